// Checks YAML files against a JSON Schema: node check_schema.js SCHEMA FILE...
// Prints one line per file: "FILE: valid", or its errors.
const fs = require('fs');
const Ajv = require('ajv');
const yaml = require('js-yaml');

const read = (file) => fs.readFileSync(file, 'utf8');
const [schema, ...files] = process.argv.slice(2);
const validate = new Ajv({allErrors: true}).compile(JSON.parse(read(schema)));
for (const file of files) {
  const valid = validate(yaml.load(read(file)) ?? null);
  const errors = (validate.errors ?? []).map((e) => `${e.dataPath} ${e.message}`);
  console.log(`${file}: ${valid ? 'valid' : errors.join('; ')}`);
}
