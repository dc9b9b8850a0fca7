package sandboxtools

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"time"
)

// FileInfo implements sandbox_file_info.
func (t *Toolbox) FileInfo(ctx context.Context, a FileInfoArgs) (FileInfoResult, error) {
	return use(ctx, t, "sandbox_file_info", a, func(s *sandbox, a FileInfoArgs) (FileInfoResult, error) {
		i, err := s.files().Lstat(a.Path)
		if err != nil {
			return FileInfoResult{}, err
		}
		r := FileInfoResult{
			Path: a.Path, Name: i.Name(), Type: typeName(i.Mode()), Size: i.Size(),
			Permissions: octalMode(i.Mode()), Owner: int64(i.Owner()), Group: int64(i.Group()),
			ModifiedAt: timeText(i.ModTime()), AccessedAt: timeText(i.AccessTime()),
		}
		if !i.CreateTime().IsZero() {
			r.CreatedAt = timeText(i.CreateTime())
		}
		return r, nil
	})
}

var typeNames = map[fs.FileMode]string{0: "file", fs.ModeDir: "directory", fs.ModeSymlink: "symlink"}

func typeName(m fs.FileMode) string { return cmp.Or(typeNames[m.Type()], "other") }

// octalMode formats the permissions with the setuid, setgid and sticky bits, as chmod(1)
// does.
func octalMode(m fs.FileMode) string {
	bits := m.Perm()
	for i, flag := range []fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
		if m&flag != 0 {
			bits |= 0o1000 << i
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}

// The range of RFC 3339. A guest can set times outside it.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

func timeText(at time.Time) string {
	switch {
	case at.Before(firstTime):
		at = firstTime
	case at.After(lastTime):
		at = lastTime
	}
	return at.UTC().Format(time.RFC3339Nano)
}
