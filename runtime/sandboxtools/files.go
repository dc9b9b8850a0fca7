package sandboxtools

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// maxFile is the maximum size of a file that one call reads or writes, in bytes.
const maxFile = 16 << 20

// WriteFile implements sandbox_write_file. If it fails, the file keeps its old content.
func (t *Toolbox) WriteFile(ctx context.Context, a WriteFileArgs) (WriteFileResult, error) {
	return use(ctx, t, "sandbox_write_file", a, func(s *sandbox, a WriteFileArgs) (WriteFileResult, error) {
		data := []byte(a.Content)
		if a.Encoding == "base64" {
			var err error
			if data, err = base64.StdEncoding.Strict().DecodeString(a.Content); err != nil {
				return WriteFileResult{}, &Error{Code: InvalidArgument, Place: "content", Err: err}
			}
		}
		if len(data) > maxFile {
			return WriteFileResult{}, refuse(Limit, "content", "%d bytes, the limit is %d", len(data), maxFile)
		}
		err := s.files().WriteFile(a.Path, data, hostfs.WriteOptions{Parents: a.CreateParentDirs})
		return WriteFileResult{Path: a.Path, Size: int64(len(data))}, err
	})
}

// ReadFile implements sandbox_read_file.
func (t *Toolbox) ReadFile(ctx context.Context, a ReadFileArgs) (ReadFileResult, error) {
	return use(ctx, t, "sandbox_read_file", a, func(s *sandbox, a ReadFileArgs) (ReadFileResult, error) {
		data, err := readBounded(s.files(), a.Path)
		if err != nil {
			return ReadFileResult{}, err
		}
		r := ReadFileResult{Path: a.Path, Encoding: a.Encoding, Size: int64(len(data))}
		if r.Encoding != "base64" && utf8.Valid(data) {
			r.Content = string(data)
		} else {
			r.Encoding, r.Content = "base64", base64.StdEncoding.EncodeToString(data)
		}
		return r, nil
	})
}

// readBounded reads a file of at most maxFile bytes. The file may grow meanwhile.
func readBounded(files *hostfs.FS, p string) ([]byte, error) {
	f, err := files.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = &fs.PathError{Op: "read", Path: p, Err: &hostfs.LimitError{What: "bytes", Limit: maxFile}}
	}
	return data, err
}

// CreateDirectory implements sandbox_create_directory.
func (t *Toolbox) CreateDirectory(ctx context.Context, a CreateDirectoryArgs) (CreateDirectoryResult, error) {
	return use(ctx, t, "sandbox_create_directory", a, func(s *sandbox, a CreateDirectoryArgs) (CreateDirectoryResult, error) {
		mkdir := s.files().Mkdir
		if a.Recursive {
			mkdir = s.files().MkdirAll
		}
		return CreateDirectoryResult{Path: a.Path}, mkdir(a.Path, 0)
	})
}

// Delete implements sandbox_delete.
func (t *Toolbox) Delete(ctx context.Context, a DeleteArgs) (DeleteResult, error) {
	return use(ctx, t, "sandbox_delete", a, func(s *sandbox, a DeleteArgs) (DeleteResult, error) {
		_, err := s.files().Lstat(a.Path) // RemoveAll does not report whether the path existed
		if err == nil {
			remove := s.files().Remove
			if a.Recursive {
				remove = s.files().RemoveAll
			}
			err = remove(a.Path)
		}
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
		if missing && a.Force {
			return DeleteResult{Path: a.Path}, nil
		}
		return DeleteResult{Path: a.Path, Deleted: true}, err
	})
}

// Exists implements sandbox_exists.
func (t *Toolbox) Exists(ctx context.Context, a ExistsArgs) (ExistsResult, error) {
	return use(ctx, t, "sandbox_exists", a, func(s *sandbox, a ExistsArgs) (ExistsResult, error) {
		exists, err := s.files().Exists(a.Path)
		return ExistsResult{Path: a.Path, Exists: exists}, err
	})
}

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

// The maximum size of a listing.
const (
	maxEntries   = 10_000
	maxPathBytes = 4 << 20
)

// ListDirectory implements sandbox_list_directory.
func (t *Toolbox) ListDirectory(ctx context.Context, a ListDirectoryArgs) (ListDirectoryResult, error) {
	return use(ctx, t, "sandbox_list_directory", a, func(s *sandbox, a ListDirectoryArgs) (ListDirectoryResult, error) {
		l := &listing{ctx: ctx, recursive: a.Recursive, result: ListDirectoryResult{Path: a.Path, Entries: []Entry{}}}
		err := s.files().Walk(a.Path, l.visit)
		if _, tooLarge := errors.AsType[*hostfs.LimitError](err); tooLarge && len(l.result.Entries) > 0 { // a limit of Walk
			l.result.Truncated, err = true, nil
		}
		return l.result, err
	})
}

// listing collects the entries of a walk. It checks ctx, as a large tree takes time.
type listing struct {
	ctx       context.Context
	recursive bool
	pathBytes int
	result    ListDirectoryResult
}

func (l *listing) visit(p string, info *hostfs.Info, err error) error {
	root := p == l.result.Path
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case err != nil && (root || errors.Is(err, runtime.ErrClosed)):
		return err
	case err != nil:
		l.result.Truncated = true
		return nil
	case root && !info.IsDir():
		return &fs.PathError{Op: "list", Path: p, Err: unix.ENOTDIR}
	case root:
		return nil
	}
	if l.pathBytes += len(p); len(l.result.Entries) == maxEntries || l.pathBytes > maxPathBytes {
		l.result.Truncated = true
		return fs.SkipAll
	}
	l.result.Entries = append(l.result.Entries, Entry{Name: info.Name(), Type: typeName(info.Mode()), Size: info.Size(), Path: p})
	if !l.recursive && info.IsDir() {
		return fs.SkipDir
	}
	return nil
}
