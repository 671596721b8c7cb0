# Copies the public headers of `source` to `binary`/difftape: the kernel without its insides, and the
# call of the program. None includes a header that is not public. They include each other as
# "core/tensor.h" in the sources and as "difftape/core/tensor.h" in the copies, since other libraries
# have folders too. Run when they are installed, and by `./dev docs`.
file(GLOB_RECURSE headers RELATIVE ${source}
  ${source}/core/*.h ${source}/autograd/*.h ${source}/layers/*.h ${source}/optim/*.h)
list(FILTER headers EXCLUDE REGEX
  "core/(attention/)?(bf16|blocks|digest|few_rows|pack|simd(_functions)?|softcap|tile)\\.h|attention/lanes\\.h|op_cases\\.h")
file(REMOVE_RECURSE ${binary})
foreach(header IN LISTS headers ITEMS train/app/program.h)
  file(READ ${source}/${header} text)
  string(REGEX REPLACE "#include \"(core|autograd|layers|optim|train)/"
    "#include \"difftape/\\1/" text "${text}")
  file(WRITE ${binary}/difftape/${header} "${text}")
endforeach()
