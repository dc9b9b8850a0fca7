# Executes a program with what the systemd unit of gaol takes away: capabilities, new privileges,
# and the right to write to most of the file system.
#
#	hardened.sh CAPABILITIES WRITABLE-FOLDERS PROGRAM [ARGUMENTS]
capabilities=$1 folders=$2
shift 2

# ProtectSystem=strict, which leaves /dev, /proc and /sys as they are.
for folder in $folders; do
  mkdir -p "$folder"
  mount --bind "$folder" "$folder"
done
mount -o remount,bind,ro /
for other in /run /tmp /var; do
  if mountpoint -q $other; then mount -o remount,bind,ro $other; fi
done
if touch /etc/gaol-test 2>/dev/null; then
  rm /etc/gaol-test
  echo "/etc is writable" >&2
  exit 1
fi
umask 077
exec setpriv --no-new-privs --bounding-set="$capabilities" "$@"
