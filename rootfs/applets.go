package rootfs

import (
	"fmt"
	"slices"
	"strings"
)

// applets are the tools of busybox that a guest gets as commands, where the
// host's busybox has them. The others administer a machine, serve, or need
// privileges that no guest has: a guest is better told that there is no mount
// than that mount failed.
var applets = strings.Fields(`
	[ ar arch ascii ash awk base64 basename bc bunzip2 bzcat bzip2 cal cat chgrp chmod chown clear cmp
	comm cp cpio crc32 cut date dc dd df diff dirname dos2unix du echo ed egrep env expand expr factor
	fallocate false fgrep find flock fold free fsync fuser getopt grep groups gunzip gzip head hexdump
	hostid hostname id install ipcalc kill killall less link ln logname ls lsof lzcat lzma lzop
	md5sum mkdir mkfifo mktemp more mv nc nice nl nohup nologin nproc nslookup od paste patch
	pgrep pidof pkill printenv printf ps pstree pwd pwdx readlink realpath reset rev rm rmdir
	run-parts sed seq setsid sh sha1sum sha256sum sha3sum sha512sum shred shuf sleep sort split stat
	strings stty sum sync tac tail tar taskset tee test time timeout top touch tr tree true truncate ts
	tsort tty ttysize uname uncompress unexpand uniq unix2dos unlink unlzma unxz unzip uptime usleep
	uudecode uuencode vi watch wc wget which who whoami xargs xxd xz xzcat yes zcat`)

// neededApplets are those that an image can't be without: a shell, and what the
// first line of npm asks for.
var neededApplets = []string{"sh", "env"}

// chooseApplets picks from the output of busybox --list.
func chooseApplets(list string) ([]string, error) {
	offered := strings.Fields(list)
	chosen := slices.DeleteFunc(slices.Clone(applets), func(name string) bool {
		return !slices.Contains(offered, name)
	})
	for _, name := range neededApplets {
		if !slices.Contains(chosen, name) {
			return nil, fmt.Errorf("busybox has no %s", name)
		}
	}
	return chosen, nil
}
