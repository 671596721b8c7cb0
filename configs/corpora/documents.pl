#!/usr/bin/perl
# Plain text of documents in reStructuredText, POD, HTML, C or GCIDE's dictionary, as JSON lines.
#
# usage: documents.pl rest|pod|html|c|gcide FOLDER <FILES >DOCUMENTS
# FILES: paths below FOLDER, one a line, in the order in which the documents are to stand.
# DOCUMENTS: one JSON object a line: "id" (the path, with the section of it), "text", and for C
# "group", its directory. Needs perl-base alone: no module beyond strict and warnings.
use strict;
use warnings;

my $smallest_document = 200;        # bytes; shorter ones are indexes and stubs
my $dictionary_document = 32_000;   # bytes after which the next headword begins a document

# ---- reStructuredText: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html ----

my %dropped = map { $_ => 1 } qw(
  index toctree contents sectionauthor moduleauthor codeauthor image figure include literalinclude
  raw kernel-doc kernel-figure kernel-render kernel-include kernel-abi kernel-feat highlight
  highlightlang currentmodule module default-domain tabularcolumns cssclass audit-event sectnum
  audit-event-table limited-api-list maintainers-include miscnews program c:namespace title
  testsetup testcleanup);
my %literal = map { $_ => 1 } qw(
  code-block code sourcecode parsed-literal productionlist doctest testcode testoutput math
  csv-table);
my %label = (
  note => 'Note', seealso => 'See also', warning => 'Warning', important => 'Important',
  tip => 'Tip', hint => 'Hint', caution => 'Caution', attention => 'Attention',
  danger => 'Danger', versionadded => 'New in version', versionchanged => 'Changed in version',
  deprecated => 'Deprecated since version', 'deprecated-removed' => 'Deprecated since version',
  availability => 'Availability', 'impl-detail' => 'CPython implementation detail');

# The text of a role's content: "title <target>" is title, "~a.b" is a.b.
sub role_text {
  my ($text) = @_;
  $text =~ s/\s*<[^<>]*>$//;
  $text =~ s/^[~!]//;
  return $text;
}

# Text outside of literal blocks without the marks of roles, links, code and emphasis.
sub rest_inline {
  my ($text) = @_;
  $text =~ s/(?<!\w):[A-Za-z][\w:+.-]*:`([^`]*)`/role_text($1)/ge;
  $text =~ s/``([^`]+(?:`[^`]+)*)``/$1/g;
  $text =~ s/`([^`<>]+?)\s*<[^`<>]*>`__?/$1/g;
  $text =~ s/`([^`]+)`(?:__?)?/role_text($1)/ge;
  $text =~ s/(?<![\w*\/])\*\*(?=[^\s*])([^*`]*?[^\s*])\*\*(?![\w*])/$1/g;
  $text =~ s/(?<![\w*\/])\*(?=[^\s*])([^*`\n]*?[^\s*\\])\*(?![\w*])/$1/g;
  $text =~ s/\\([*`_|])/$1/g;
  return $text;
}

sub rest {
  my ($source) = @_;
  my ($out, $chunk) = ('', '');
  my ($skip, $literal) = (-1, -1);  # blocks that are indented by more than this
  my ($options, $grammar) = (0, 0);  # whether options of a directive, productions may follow
  for my $line (split /\n/, $source) {
    my $blank = $line =~ /^\s*$/;
    my ($space) = $line =~ /^([ \t]*)/;
    my $indent = length $space;
    if ($skip >= 0) {
      next if $blank || $indent > $skip;
      $skip = -1;
    }
    if ($options) {
      next if $line =~ /^\s+:[\w-]+:(?:\s|$)/;
      $options = 0;
    }
    if ($literal >= 0) {
      if ($blank || $indent > $literal) {
        $line =~ tr/`//d if $grammar;
        $out .= "$line\n";
        next;
      }
      $literal = -1;
    }
    if ($line =~ /^\s*\.\. +(?:\|[^|]*\| +)?([\w:+-]+?) ?::(?:\s+(.*))?$/) {
      my ($name, $argument) = (lc $1, $2 // '');
      if ($dropped{$name}) {
        $skip = $indent;
        next;
      }
      $options = 1;
      if ($literal{$name}) {
        $out .= rest_inline($chunk);
        $chunk = '';
        $literal = $indent;
        $grammar = $name eq 'productionlist';
      } elsif ($label{$name}) {
        $argument =~ s/^(\S+) (?=\d)/$1, removed in / if $name eq 'deprecated-removed';
        $chunk .= $space . ($label{$name} !~ /version$/ ? "$label{$name}: $argument\n" :
          "$label{$name} $argument" . ($argument =~ /^[\d., a-z]*$/ ? ":\n" : "\n"));
      } elsif ($argument ne '' && $name !~ /^(?:only|ifconfig|(?:flat|list)-table)$/) {
        $chunk .= "$space$argument\n";
      }
      next;
    }
    if ($line =~ /^\s*\.\. +(\[[^\]]+\])\s+(.*)$/) {  # a footnote
      $chunk .= "$space$1 $2\n";
      next;
    }
    if ($line =~ /^\s*\.\.(?:\s|$)/) {  # a label, a link's target or a comment
      $skip = $indent;
      next;
    }
    next if $line =~ /^\s*__ +\S+$/;  # an anonymous link's target
    if ($line =~ /^(.*?)\s*::$/ && $line !~ /^\s*:*$/) {
      $chunk .= "$1:\n";
    } elsif ($line !~ /^\s*::$/) {
      $chunk .= "$line\n";
    }
    if ($line =~ /::$/) {
      $out .= rest_inline($chunk);
      $chunk = '';
      ($literal, $grammar) = ($indent, 0);
    }
  }
  return $out . rest_inline($chunk);
}

# ---- POD: perlpod(1) ----

my %pod_escape = (lt => "\x01", gt => "\x02", verbar => '|', sol => '/');

# The text of L<content>.
sub pod_link {
  my ($link) = @_;
  return $1 if $link =~ /^([^|]*)\|/;
  return $link if $link =~ m{^[a-z]+://};
  return $1 if $link =~ m{^/?"(.*)"$} || $link =~ m{^/(.*)$};
  return "\"$2\" in $1" if $link =~ m{^([^/]*)/"?(.*?)"?$};
  return $link;
}

sub pod_code {
  my ($code, $content) = @_;
  return '' if $code eq 'X' || $code eq 'Z';
  if ($code eq 'E') {
    return $pod_escape{$content} if defined $pod_escape{$content};
    return chr($content =~ /^0x/i ? hex $content : $content) if $content =~ /^(?:0x)?[0-9a-f]+$/i;
    return html_entity($content);
  }
  return $code eq 'L' ? pod_link($content) : $content;
}

sub pod_inline {
  my ($text) = @_;
  # Codes with more than one bracket hold plain < and >.
  $text =~ s/([A-Z])(<{2,})\s+(.*?)\s+(??{'>' x length $2})/
      my ($code, $content) = ($1, $3);
      $content =~ tr{<>}{\x01\x02};
      "$code<$content>"/gse;
  1 while $text =~ s/([BCEFILSXZ])<([^<>]*)>/pod_code($1, $2)/ge;
  $text =~ tr/\x01\x02/<>/;
  return $text;
}

sub pod {
  my ($source) = @_;
  my ($out, $mark) = ('', '');  # mark: of an item whose text is the next paragraph
  $source =~ s/\A.*?^(?==[a-z])//ms;
  $source =~ s/^(?==for\b)/\n/gm;  # without the empty line that belongs before it
  my $ignored = '';  # the format of =begin
  for my $paragraph (split /\n(?:[ \t]*\n)+/, $source) {
    $paragraph =~ s/^\n+//;
    if ($paragraph =~ /^=begin\s+(\S+)/) { $ignored = $1; next; }
    if ($paragraph =~ /^=end\b/) { $ignored = ''; next; }
    next if $ignored ne '' && $ignored !~ /^:?text$/;
    next if $paragraph =~ /^=(?:for|pod|cut|encoding|over|back)\b/;
    if ($paragraph =~ /^=item\s+(\*|\d+\.?)\s*$/) { $mark = "$1 "; next; }
    $paragraph =~ s/^=(?:head\d|item)\s*//;
    my $text = $paragraph =~ /^[ \t]/ ? $paragraph : pod_inline($paragraph);
    $text =~ s{\s+\z}{};
    $out .= "$mark$text\n\n" if $text =~ /\S/;
    $mark = '';
  }
  return $out;
}

# ---- HTML ----

my %entity = (
  amp => '&', lt => '<', gt => '>', quot => '"', nbsp => ' ', apos => "'", copy => "\x{a9}",
  eacute => "\x{e9}", egrave => "\x{e8}", aacute => "\x{e1}", agrave => "\x{e0}",
  oacute => "\x{f3}", uacute => "\x{fa}", iacute => "\x{ed}", ntilde => "\x{f1}",
  ccedil => "\x{e7}", auml => "\x{e4}", ouml => "\x{f6}", uuml => "\x{fc}", euml => "\x{eb}",
  iuml => "\x{ef}", oslash => "\x{f8}", szlig => "\x{df}", mdash => "\x{2014}",
  ndash => "\x{2013}", lsquo => "\x{2018}", rsquo => "\x{2019}", ldquo => "\x{201c}",
  rdquo => "\x{201d}", hellip => "\x{2026}", pound => "\x{a3}", euro => "\x{20ac}");

sub html_entity {
  my ($name) = @_;
  return chr $1 if $name =~ /^#(\d+)$/;
  return chr hex $1 if $name =~ /^#x([0-9a-fA-F]+)$/;
  return $entity{$name} // "&$name;";
}

sub html {
  my ($text) = @_;
  $text =~ s/<!--.*?-->//gs;
  $text =~ s/<(head|script|style)\b.*?<\/\1\s*>//gsi;
  $text =~ s/\s+/ /g;
  $text =~ s/<br\b[^>]*>\s*/\n/gi;
  $text =~ s/\s*<li\b[^>]*>\s*/\n* /gi;
  $text =~ s/\s*<\/(?:td|th)>\s*/  /gi;
  $text =~ s/\s*<\/?(?:p|div|h\d|blockquote|ul|ol|dl|table|pre|hr|center|body|html)\b[^>]*>\s*/\n\n/gi;
  $text =~ s/\s*<\/?(?:tr|dt|dd)\b[^>]*>\s*/\n/gi;
  $text =~ s/<\/?[a-zA-Z][^<>]*>//g;
  $text =~ s/&(#?\w+);/html_entity($1)/ge;
  $text =~ s/[ \t]*\n[ \t]*/\n/g;
  $text =~ s/\n{3,}/\n\n/g;
  return $text;
}

# ---- GCIDE as dictd has it: headwords at the left margin, their texts indented ----

# Letters with marks, written as in [^e]: the mark, then pairs of a letter and its form.
my %marked;
for (["'" => 'aáeéiíoóuúyýAÁEÉIÍOÓUÚ'], ['`' => 'aàeèiìoòuùAÀEÈ'], ['^' => 'aâeêiîoôuûAÂEÊ'],
     ['"' => 'aäeëiïoöuüAÄEËOÖUÜ'], ['=' => 'aāeēiīoōuūyȳAĀEĒ'], ['~' => 'nñaãoõNÑ'],
     [',' => 'cçCÇ']) {
  my ($mark, $pairs) = @$_;
  utf8::decode($pairs);
  my @pairs = split //, $pairs;
  while (my ($letter, $form) = splice @pairs, 0, 2) { $marked{"$mark$letter"} = $form; }
}
my $after = 'a^ăe^ĕi^ĭo^ŏu^ŭ';  # a mark that follows its letter: a breve
utf8::decode($after);
$marked{$1} = $2 while $after =~ /(\w\^)(\w)/g;
my $named = 'ae æ oe œ AE Æ OE Œ imac ī aum ä eth ð thorn þ yogh ȝ root √ deg ° sect § add a asl a ' .
  'udd u oomac oo dsdot s pounds £ alpha α beta β gamma γ delta δ Delta Δ theta θ phi φ pi π ' .
  'epsilon ε lambda λ mu μ omega ω sigma σ frac12 ½ frac14 ¼ prime ′ bprime ′ th th ng ng oo oo';
utf8::decode($named);
%marked = (%marked, split / /, $named);

# What a bracket of a letter and its mark stands for; undef if it is none.
sub marked_letter {
  my ($inside) = @_;
  return $marked{$inside} if defined $marked{$inside};
  return $2 if $inside =~ /^(['`^"=~,.*+-])([A-Za-z]{1,2})$/;
  return $1 if $inside =~ /^([A-Za-z]{1,2})(['`^"=~,.*+-])$/;
  return undef;
}

# The mark of who wrote an entry: "[1913 Webster +PJC]".
my $writer = qr/\[(?:(?:1913\s+Webster|Webster\s+1913|WordNet|PJC|Century\s+Dict)[^\[\]]{0,60}|
                    AS|RDH|RHUD?|RP|JC|CM|JG)\]/x;

sub gcide {
  my ($entry) = @_;
  # The headword is repeated with its accents between backslashes, then by its sounds.
  $entry =~ s/[ \n]*\\[^\\]{1,300}\\(?:\s*\((?=[^()]*[\["`*])[^()]*\))?//g;
  $entry =~ s/\s*$writer//g;
  1 while $entry =~ s/\[([^\[\]\s]{1,7})\]/marked_letter($1) \/\/ "\x01$1\x02"/ge;
  $entry =~ tr/\x01\x02/[]/;
  $entry =~ tr/{}//d;
  # Words that are derived from it have their accents in them: -- La"bored*ly, adv.
  $entry =~ s/(--\s+)([A-Za-z][\w`"*-]+)(?=[,.; ])/my ($dash, $word) = ($1, $2);
                                                 $word =~ tr{`"*}{}d; "$dash$word"/gex;
  return $entry;
}

# ---- documents ----

# Lines without trailing blanks, at most two of them empty in a row; no control characters.
sub clean {
  my ($text) = @_;
  $text =~ s/\r\n?|\f|\x{2028}/\n/g;
  $text =~ tr/\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\x{feff}\x{200b}\x{ad}//d;
  $text =~ s/[ \t\x{a0}]+$//gm;
  $text =~ s/\n{4,}/\n\n\n/g;
  $text =~ s/^\n+//;
  $text =~ s/\n*$/\n/;
  return $text;
}

sub json_string {
  my ($text) = @_;
  utf8::encode($text);
  $text =~ s/([\\"])/\\$1/g;
  $text =~ s/\n/\\n/g;
  $text =~ s/\t/\\t/g;
  return "\"$text\"";
}

sub write_document {
  my ($id, $text, $group) = @_;
  $text = clean($text);
  return if length $text < $smallest_document;
  print '{"id":', json_string($id), defined $group ? ',"group":' . json_string($group) : '',
    ',"text":', json_string($text), "}\n" or die "documents.pl: cannot write the documents: $!\n";
}

# The text of a file: UTF-8, or else Windows-1252, of which ISO 8859-1 is a part.
sub contents {
  my ($path) = @_;
  open my $file, '<', $path or die "documents.pl: cannot read $path: $!\n";
  local $/;
  my $text = <$file>;
  return $text if utf8::decode($text);
  $text =~ tr/\x85\x91\x92\x93\x94\x95\x96\x97/\x{2026}\x{2018}\x{2019}\x{201c}\x{201d}\x{2022}\x{2013}\x{2014}/;
  return $text;
}

sub write_dictionary {
  my ($path, $source) = @_;
  $source =~ s/\A.*?\n(?=\S+ \\)//s;  # what stands before the first headword
  my ($document, $first, $last) = ('', '', '');
  for my $entry (split /\n\s*\n(?=\S)/, $source) {
    my ($headword) = $entry =~ /^([^\\\n]*?)\s*(?:\\|\n|$)/;
    if (length $document >= $dictionary_document && lc $headword ne lc $last) {
      write_document("$path/$first", $document);
      $document = '';
    }
    $first = $headword if $document eq '';
    $last = $headword;
    my $text = gcide($entry);
    $text =~ s/\s*$/\n\n/;
    $document .= $text;
  }
  write_document("$path/$first", $document);
}

my ($kind, $folder) = @ARGV;
die "usage: documents.pl rest|pod|html|c|gcide FOLDER <FILES\n"
  unless @ARGV == 2 && $kind =~ /^(?:rest|pod|html|c|gcide)$/;
while (my $path = <STDIN>) {
  chomp $path;
  my $source = contents("$folder/$path");
  if ($kind eq 'rest') {
    write_document($path, rest($source));
  } elsif ($kind eq 'pod') {
    write_document($path, pod($source));
  } elsif ($kind eq 'c') {
    my ($group) = $path =~ m{^(.*)/};
    write_document($path, $source, $group // '.');
  } elsif ($kind eq 'gcide') {
    write_dictionary($path, $source);
  } else {
    my $section = 0;
    write_document($path . ($section++ ? "#$section" : ''), html($_))
      for split /(?=<h2\b)/i, $source;
  }
}
close STDOUT or die "documents.pl: cannot write the documents: $!\n";
