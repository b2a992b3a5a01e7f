"""Data: what well-known programs read and write, by options and operands.

A line is `names : options : operands`; an indented line goes on with the one before. An option is a
letter or a long name with its role: `r` reads the file it names, `l` reads it and all that are named in
it, `w` writes it, `x` runs its text, `v` (or nothing) is a plain value; `?` behind it: the value, if any,
is attached. Operands: `r` read, `w` written, `t` written with all that is under it, `z` replaced by a
packed or unpacked copy, `v` neither, each for one operand, the last for all further ones; `cp` and `in`:
the last is written and the others are read; `pr`: as `vr`, unless one of the options marked `!` is there.
"""

READS = """
cat tac nl rev bat batcat : H l r : r
head tail : n=v c=v s=v pid lines bytes : r
less more most zless zmore : o=w O=w k=r log-file=w LOG-FILE=w lesskey-file=r P p t T x y z b j h D : r
wc : files0-from=l : r
cut : b c d f bytes characters delimiter fields output-delimiter : r
paste : d delimiters : r
join : 1 2 j t e a v o i : r
comm : output-delimiter : r
tsort fmt pr expand unexpand fold : w t g p i tabs width : r
column : c s o N R T W E O d table-columns output-separator separator : r
diff : U C I F W x X=r D context unified ignore-matching-lines exclude exclude-from=r starting-file
    from-file=r to-file=r label L width : r
sdiff : o=w w W I output=w : r
diff3 cmp : L i n label bytes ignore-initial : r
strings : n t e T bytes radix encoding target : r
od : A j N S t w? address-radix skip-bytes read-bytes format strings : r
hexdump hd : e f=r n s : r
base64 base32 basenc : w wrap : r
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum cksum shasum md5 : a algorithm : r
file : f=l m=r F P e files-from=l magic-file=r separator exclude : r
stat : c f t format printf : r
ls dir vdir gls exa eza lsd : I w T ignore hide time-style block-size sort color? format indicator-style
    quoting-style time tabsize width : r
du : d B t X=r max-depth block-size threshold exclude exclude-from=r files0-from=l time-style : r
jq gojq jaq yq : f=l! from-file=l! L=l indent arg arg-json : pr
zcat gzcat bzcat xzcat zstdcat zgrep zegrep zfgrep : e f=r A B C m : r
grep egrep fgrep ugrep : e! f=r! regexp! file=r! A B C m d D after-context before-context context
    max-count label include exclude include-from=r exclude-from=r exclude-dir binary-files directories
    devices group-separator color? colour? : pr
rg ripgrep : e! f=r! regexp! file=r! g t T A B C m M j E r iglob glob type type-not type-add after-context
    before-context context max-count max-depth max-filesize ignore-file=r path-separator pre=x pre-glob
    sort sortr threads replace encoding color colors engine hostname-bin=x context-separator
    field-match-separator dfa-size-limit regex-size-limit : pr
ag ack : A B C m G p=r pager=x type ignore ignore-dir output ignore-file : pr
nm objdump readelf size ldd otool : j M C section disassembler-options : r
xmllint : o=w output=w schema=r relaxng=r xpath pattern encode maxmem path : r
look : t : vr
date gdate : d f=r r s date file=r reference=r set I? : v
man : H=x? html=x? P=x pager=x C=r config-file=r M L m r T? p e s k? : v
shuf : o=w i n output=w random-source=r input-range head-count : r
uniq : f s w skip-fields skip-chars check-chars group : rw
sort gsort : k t S T=w o=w output=w compress-program=x files0-from=l random-source=r batch-size parallel
    key field-separator buffer-size temporary-directory=w sort check? : r
tree : o=w L P I H T charset filelimit timefmt sort gitfile=r infofile=r output=w : r
awk gawk mawk nawk original-awk : f=r! file=r! v F i=r! e! E=r! o? p? d? D? include=r assign
    field-separator profile? dump-variables? pretty-print? : pr
view vim vi nvim nano emacs ed ex : c S u : w
"""

WRITES = """
tee sponge : : w
rm unlink shred gshred rmdir trash trash-put : n s iterations size : t
mkdir mkfifo : m Z mode context : w
touch : t d r=r date reference=r time : w
truncate : s r=r size reference=r : w
cp gcp : t=w S target-directory=w suffix backup? reflink? sparse : cp
mv gmv : t=w S target-directory=w suffix : mv
install ginstall : m o g t=w S mode owner group target-directory=w suffix strip-program=x backup? : in
chmod chown chgrp chattr setfacl : reference=r! from : vt
mknod : m mode : wv
gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress pigz lzma brotli : S o=w b suffix
    output=w T : z
zip : b t x i n P : wr
dos2unix unix2dos mac2dos : : w
fallocate : l o length offset : w
ar : : vwr
strip : o=w : w
objcopy : O I : rw
gpg gpg2 : o=w output=w r u homedir=r recipient local-user armor? : r
ssh-keygen : f=w t b C N q m P : v
xxd : c g l s o : rw
mktemp : p=w tmpdir? suffix : v
rsync : e=x rsh=x rsync-path=x f T B exclude include exclude-from=r include-from=r files-from=r filter
    log-file=w temp-dir=w partial-dir=w backup-dir=w compare-dest copy-dest link-dest=r password-file=r
    chmod chown info debug out-format max-size min-size timeout port bwlimit : cp
scp : i=r o P l F=r S=x c J D : cp
7z 7za 7zr : : vwr
crontab : u : r
"""
