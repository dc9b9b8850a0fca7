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
"$built" image build --store "$store"
for launcher in zygote exec; do
	[ "$("$built" run --store "$store" --launcher "$launcher" -e 'console.log(6 * 7)')" = 42 ]
done
[ "$("$built" run --store "$store" --command -- busybox echo small tools)" = "small tools" ]
