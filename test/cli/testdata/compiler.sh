# Builds an image where the files in the last arguments are hidden, and runs programs in it. It is
# executed in a mount namespace and a network namespace of its own.
built=$1 plain=$2 store=$3
shift 3

for file in "$@"; do
	mount --bind /dev/null "$file"
done
if command -v cc || command -v gcc || busybox true; then
	echo "a compiler or busybox is not hidden"
	exit 1
fi 2>/dev/null

if "$plain" image build --store "$store"; then
	echo "the image was built without prebuilt programs"
	exit 1
fi
# The first run says what it downloads. With --json it says nothing.
[ "$("$built" run --store "$store" -e 'console.log(6 * 7)' 2>"$store.progress")" = 42 ]
cat "$store.progress"
grep -q '^the image is missing: build it (downloads of .* are kept in .*/downloads)$' "$store.progress"
# image build makes the same image again, and --if-missing nothing.
first=$(readlink "$store/names/default")
[ "$("$built" image build --store "$store")" = "sha256:${first##*/}" ]
[ "$("$built" image build --if-missing --store "$store" 2>&1)" = "sha256:${first##*/}" ]
"$built" run --json --store "$store" -e '' 2>&1 >/dev/null | (! grep .)
for launcher in zygote exec; do
	[ "$("$built" run --store "$store" --launcher "$launcher" -e 'console.log(6 * 7)')" = 42 ]
done
[ "$("$built" run --store "$store" --command -- busybox echo small tools)" = "small tools" ]
