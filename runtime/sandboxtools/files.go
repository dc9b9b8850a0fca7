package sandboxtools

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/runtime/resultjson"
	"gaol/vfs/hostfs"
)

// maxFile is the maximum size of a file that one call reads or writes, in bytes.
const maxFile = 16 << 20

// writeFile implements sandbox_write_file. If it fails, the file keeps its old content.
func (s *sandbox) writeFile(_ context.Context, a *WriteFileArgs) (WriteFileResult, error) {
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
	err := s.FS().WriteFile(a.Path, data, hostfs.WriteOptions{Parents: a.CreateParentDirs})
	return WriteFileResult{Path: a.Path, Size: int64(len(data))}, err
}

// readFile implements sandbox_read_file.
func (s *sandbox) readFile(_ context.Context, a *ReadFileArgs) (ReadFileResult, error) {
	data, err := s.FS().ReadFile(a.Path)
	if err == nil && len(data) > maxFile {
		err = refuse(Limit, "", "%s has %d bytes, the limit is %d", a.Path, len(data), maxFile)
	}
	if err != nil {
		return ReadFileResult{}, err
	}
	r := ReadFileResult{Path: a.Path, Encoding: cmp.Or(a.Encoding, "utf8"), Size: int64(len(data))}
	if r.Encoding != "base64" && utf8.Valid(data) {
		r.Content = string(data)
	} else {
		r.Encoding, r.Content = "base64", base64.StdEncoding.EncodeToString(data)
	}
	return r, nil
}

// createDirectory implements sandbox_create_directory.
func (s *sandbox) createDirectory(_ context.Context, a *CreateDirectoryArgs) (CreateDirectoryResult, error) {
	mkdir := s.FS().Mkdir
	if a.Recursive {
		mkdir = s.FS().MkdirAll
	}
	return CreateDirectoryResult{Path: a.Path}, mkdir(a.Path, 0)
}

// delete implements sandbox_delete.
func (s *sandbox) delete(_ context.Context, a *DeleteArgs) (DeleteResult, error) {
	_, err := s.FS().Lstat(a.Path) // RemoveAll does not report whether the path existed
	if err == nil {
		remove := s.FS().Remove
		if a.Recursive {
			remove = s.FS().RemoveAll
		}
		err = remove(a.Path)
	}
	if missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR); missing && a.Force {
		return DeleteResult{Path: a.Path}, nil
	}
	return DeleteResult{Path: a.Path, Deleted: true}, err
}

// exists implements sandbox_exists.
func (s *sandbox) exists(_ context.Context, a *InFile) (ExistsResult, error) {
	exists, err := s.FS().Exists(a.Path)
	return ExistsResult{Path: a.Path, Exists: exists}, err
}

// fileInfo implements sandbox_file_info.
func (s *sandbox) fileInfo(_ context.Context, a *InFile) (FileInfoResult, error) {
	i, err := s.FS().Lstat(a.Path)
	if err != nil {
		return FileInfoResult{}, err
	}
	r := FileInfoResult{
		Path: a.Path, Name: i.Name(), Type: typeName(i.Mode()), Size: i.Size(),
		Permissions: i.Permissions(), Owner: int64(i.Owner()), Group: int64(i.Group()),
		ModifiedAt: timeText(i.ModTime()), AccessedAt: timeText(i.AccessTime()),
	}
	if !i.CreateTime().IsZero() {
		r.CreatedAt = timeText(i.CreateTime())
	}
	return r, nil
}

var typeNames = map[fs.FileMode]string{0: "file", fs.ModeDir: "directory", fs.ModeSymlink: "symlink"}

func typeName(m fs.FileMode) string { return cmp.Or(typeNames[m.Type()], "other") }

func timeText(at time.Time) string { return resultjson.ClampTime(at).Format(time.RFC3339Nano) }

// The maximum size of a listing.
const (
	maxEntries   = 10_000
	maxPathBytes = 4 << 20
)

// listDirectory implements sandbox_list_directory.
func (s *sandbox) listDirectory(ctx context.Context, a *ListDirectoryArgs) (ListDirectoryResult, error) {
	list, truncated, err := s.FS().List(ctx, a.Path, hostfs.ListOptions{Flat: !a.Recursive, Entries: maxEntries, Bytes: maxPathBytes})
	r := ListDirectoryResult{Path: a.Path, Entries: []Entry{}, Truncated: truncated}
	for _, e := range list {
		r.Entries = append(r.Entries, Entry{Name: e.Name(), Type: typeName(e.Mode()), Size: e.Size(), Path: e.Path})
	}
	return r, err
}
