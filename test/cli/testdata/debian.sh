# Installs, upgrades, removes and purges a package in an overlay of the root folder.
#
#	debian.sh FOLDER FIRST.deb SECOND.deb
dir=$1 first=$2 second=$3

mkdir "$dir/upper" "$dir/work" "$dir/root" "$dir/hidden"
mount -t tmpfs tmpfs "$dir/hidden"
mkdir -p "$dir/hidden/var/lib"
mknod "$dir/hidden/var/lib/gaol" c 0 0 # a whiteout: concurrent tests build images in the store
mount -t overlay overlay -o "lowerdir=$dir/hidden:/,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
mount -t proc proc "$dir/root/proc"
mount --bind /dev "$dir/root/dev"
mount -t tmpfs tmpfs "$dir/root/run"
mount -t tmpfs tmpfs "$dir/root/tmp"
cp "$first" "$dir/root/tmp/first.deb"
cp "$second" "$dir/root/tmp/second.deb"
export DEBIAN_FRONTEND=noninteractive

# An installed gaol of the machine would hide what the package does.
in_root() { chroot "$dir/root" "$@"; }
in_root sh -c 'groupdel gaol 2>/dev/null; rm -rf /etc/gaol /var/lib/gaol /var/log/gaol; dpkg --purge gaol' >/dev/null 2>&1 || true
fail() { echo "$*" >&2; exit 1; }

rm -f "$dir/root/var/lib/man-db/auto-update" # mandb takes seconds

in_root dpkg --install /tmp/first.deb
in_root getent group gaol || fail "no group"
in_root gaol version
[ "$(in_root stat -c '%a %u' /usr/lib/gaol/runc)" = "755 0" ] || fail "other users can replace runc"
in_root /usr/lib/gaol/runc --version
in_root dpkg --listfiles gaol | grep bin/runc && fail "the package replaces the distribution's runc"
in_root zgrep -q SIGHUP /usr/share/man/man1/gaol-serve.1.gz || fail "no manual page"
[ "$(stat -c %a "$dir/root/var/log/gaol")" = 750 ] || fail "the folder of logs is not 0750"
if command -v systemd-analyze >/dev/null; then
  in_root systemd-analyze verify --man=no /usr/lib/systemd/system/gaol.service /usr/lib/systemd/system/gaol.socket || fail "the units are invalid"
fi
if command -v logrotate >/dev/null; then
  in_root logrotate --debug /etc/logrotate.d/gaol || fail "the rules of logrotate are invalid"
fi

# The server does not start without an image, and says how to make one.
start=$(sed -n 's/^ExecStart=//p' "$dir/root/usr/lib/systemd/system/gaol.service")
if in_root $start 2>"$dir/error"; then fail "the server runs without an image"; fi
grep -q 'default image: .*gaol image build' "$dir/error" || fail "without an image: $(cat "$dir/error")"

# With systemd, the maintainer scripts enable the units, and start them if the image is in the store.
mkdir -p "$dir/root/run/systemd/system" "$dir/root/var/lib/gaol"
mount -o bind,ro /var/lib/gaol "$dir/root/var/lib/gaol"
cat >"$dir/root/usr/local/sbin/systemctl" <<'END'
#!/bin/sh
echo "$@" >>/tmp/calls
END
chmod 755 "$dir/root/usr/local/sbin/systemctl"
expect() { # the calls of systemctl since the last time
  [ "$(cat "$dir/root/tmp/calls" | tr '\n' ,)" = "$1" ] || fail "calls of systemctl: $(cat "$dir/root/tmp/calls")"
  rm "$dir/root/tmp/calls"
}

echo '{"drainMs": 1}' >"$dir/root/etc/gaol/server.json"
in_root dpkg --force-confold --install /tmp/second.deb
umount "$dir/root/var/lib/gaol"
expect 'daemon-reload,start gaol.socket,restart gaol.service,'
grep -q drainMs "$dir/root/etc/gaol/server.json" || fail "an upgrade has replaced the configuration"

mkdir "$dir/root/var/lib/gaol/images"
in_root dpkg --remove gaol
expect 'stop gaol.socket gaol.service,disable gaol.socket gaol.service,daemon-reload,'
[ ! -e "$dir/root/usr/bin/gaol" ] || fail "remove has left the program"
[ ! -e "$dir/root/usr/lib/gaol" ] || fail "remove has left runc"
grep -q drainMs "$dir/root/etc/gaol/server.json" || fail "remove has deleted the configuration"
[ -d "$dir/root/var/lib/gaol/images" ] || fail "remove has deleted images"

in_root dpkg --purge gaol
for left in /etc/gaol /etc/logrotate.d/gaol /var/lib/gaol /var/log/gaol; do
  [ ! -e "$dir/root$left" ] || fail "purge has left $left"
done
if in_root getent group gaol; then fail "purge has left the group"; fi

in_root dpkg --install /tmp/second.deb | grep 'gaol image build' || fail "the installation does not say that an image is missing"
expect 'daemon-reload,enable gaol.service gaol.socket,'
in_root dpkg --purge gaol
echo ok
