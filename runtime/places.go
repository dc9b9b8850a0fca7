package runtime

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gaol/policy"
)

// placed refuses rules that name what the image has by another name, or as another
// kind. To the kernel a rule of /bin/sh says nothing of /usr/bin/sh.
func placed(p policy.Permissions, image string) error {
	return p.Refuse(func(at policy.Place) (why, nearest string) { return misplaced(image, at) })
}

// place refuses a runtime's own.
func (s settings) place() error {
	if err := placed(s.permissions, s.image); err != nil {
		return optionError("Permissions", "%w", err)
	}
	return nil
}

// misplaced says why a place is not what it seems; "" for one that the image does not
// have, or has as it is named. It follows no link.
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
