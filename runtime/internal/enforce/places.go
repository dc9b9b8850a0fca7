package enforce

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gaol/policy"
)

// CheckPlaces refuses rules whose path is a symbolic link in the image, or whose form does
// not match the kind of file. The kernel knows files, not names: a rule for /bin/sh says
// nothing about /usr/bin/sh.
func (t Tree) CheckPlaces(p policy.Permissions) error {
	return p.Refuse(func(at policy.Place) (why, nearest string) { return misplaced(t.Image, at) })
}

// misplaced returns why a place does not name what it seems to, and the nearest place that
// does. It returns "" if the image has the file under that name or lacks it. It follows no
// link.
func misplaced(image string, p policy.Place) (why, nearest string) {
	at := "/"
	for name := range strings.SplitSeq(p.Path[1:], "/") {
		at = path.Join(at, name)
		info, err := os.Lstat(filepath.Join(image, at))
		switch isLast := at == p.Path; {
		case err != nil:
			return "", ""
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(filepath.Join(image, at))
			if err != nil {
				return "", ""
			}
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(at), target)
			}
			real := policy.Place{Path: path.Join(target, p.Path[len(at):]), Tree: p.Tree}
			return at + " is a symbolic link, and the kernel knows its target only", real.String()
		case info.IsDir() && isLast && !p.Tree:
			return "it is a folder, and a path without /** is one file", p.Path + "/**"
		case !info.IsDir() && (!isLast || p.Tree):
			return at + " is no folder", at
		}
	}
	return "", ""
}
