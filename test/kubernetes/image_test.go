package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archiveVar names the archive of make container.
const archiveVar = "GAOL_TEST_CONTAINER"

// TestImage runs the worker of the container image in a folder with nothing but the image and what the pod mounts: the scripts, and a
// store that is empty at first.
func TestImage(t *testing.T) {
	archive := os.Getenv(archiveVar)
	if archive == "" {
		t.Skip("make test-kubernetes runs this test")
	}
	dir := t.TempDir()
	scripts, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	root, layout := filepath.Join(dir, "root"), filepath.Join(dir, "layout")
	run(t, unpackScript, "sh", "-es", archive, layout, root)
	// This process must not see the mounts: it removes the folder.
	out := run(t, mountScript, "unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "sh", "-es", root, scripts)
	want := "no changes\n42\n43\n44\nnats-server: v"
	if !strings.HasPrefix(out, want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

// unpackScript unpacks the layer of an archive, and makes the folders at which a container runtime mounts.
const unpackScript = `
mkdir "$2" "$3"
tar -xf "$1" -C "$2"
layer=$(ls -S "$2"/blobs/sha256/* | head -n 1)
tar -xzf "$layer" -C "$3"
cd "$3"
mkdir -p proc sys dev etc/gaol/config var/lib/gaol var/cache/gaol run/gaol`

// mountScript mounts what a container runtime and the pod mount, makes the rest read-only, and runs containerScript.
const mountScript = `
cd "$1"
mount --bind . .
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs dev
for device in null zero full random urandom; do
	: >dev/$device
	mount --bind /dev/$device dev/$device
done
for folder in tmp var/lib/gaol var/cache/gaol run/gaol; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mount --bind "$2" etc/gaol/config
mount -o remount,bind,ro .
exec chroot . /usr/bin/busybox env -i PATH=/usr/bin busybox sh -ec '` + containerScript + `'`

// containerScript does what the pod does. The second time, the store has the image.
const containerScript = `
for time in 1 2; do busybox sh /etc/gaol/config/image.sh; done
gaol image verify default >&2 && echo no changes
gaol run -e "console.log(42)"
gaol run --isolation runc -e "console.log(43)"
for time in 1 2 3; do # a busy machine may be too slow for the check that the server makes first
	gaol serve --socket /tmp/gaol.sock --config /etc/gaol/config/server.json &
	server=$!
	for _ in $(seq 300); do [ ! -S /tmp/gaol.sock ] || break 2; sleep 0.1; done
	wait $server || :
done
gaol run --server /tmp/gaol.sock -e "console.log(44)"
kill $server
wait $server
nats-server --version
`
