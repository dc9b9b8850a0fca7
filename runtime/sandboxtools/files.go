package sandboxtools

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/vfs/hostfs"
)

// maxFile is how many bytes a file has that is read or written by one call.
const maxFile = 16 << 20

// WriteFile is sandbox_write_file. If it fails, the file has its old content.
func (t *Toolbox) WriteFile(ctx context.Context, a WriteFileArgs) (WriteFileResult, error) {
	return use(ctx, t, "sandbox_write_file", a, writeFile)
}

func writeFile(_ context.Context, s *sandbox, a WriteFileArgs) (WriteFileResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return WriteFileResult{}, err
	}
	data := []byte(a.Content)
	if a.Encoding == "base64" {
		if data, err = base64.StdEncoding.Strict().DecodeString(a.Content); err != nil {
			return WriteFileResult{}, &Error{Code: InvalidArgument, Place: "content", Err: err}
		}
	}
	if len(data) > maxFile {
		return WriteFileResult{}, refuse(Limit, "content", "%d bytes are more than %d", len(data), maxFile)
	}
	err = s.files().WriteFile(p, data, hostfs.WriteOptions{Parents: a.CreateParentDirs})
	return WriteFileResult{Path: p, Size: int64(len(data))}, err
}

// ReadFile is sandbox_read_file.
func (t *Toolbox) ReadFile(ctx context.Context, a ReadFileArgs) (ReadFileResult, error) {
	return use(ctx, t, "sandbox_read_file", a, readFile)
}

func readFile(_ context.Context, s *sandbox, a ReadFileArgs) (ReadFileResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return ReadFileResult{}, err
	}
	data, err := readBounded(s.files(), p)
	if err != nil {
		return ReadFileResult{}, err
	}
	r := ReadFileResult{Path: p, Encoding: a.Encoding, Size: int64(len(data))}
	if r.Encoding != "base64" && utf8.Valid(data) {
		r.Content = string(data)
		return r, nil
	}
	r.Encoding, r.Content = "base64", base64.StdEncoding.EncodeToString(data)
	return r, nil
}

// readBounded reads a file that may grow meanwhile.
func readBounded(files *hostfs.FS, p string) ([]byte, error) {
	f, err := files.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: p, Err: unix.EISDIR}
	}
	limit := &fs.PathError{Op: "read", Path: p, Err: &hostfs.LimitError{What: "bytes", Limit: maxFile}}
	if info.Size() > maxFile {
		return nil, limit
	}
	data, whole, err := readUpTo(f, maxFile)
	if err == nil && !whole {
		return nil, limit
	}
	return data, err
}

// readUpTo reads at most limit bytes, and tells whether that was all.
func readUpTo(r io.Reader, limit int64) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(data)) > limit {
		return data[:limit], false, err
	}
	return data, true, err
}

// CreateDirectory is sandbox_create_directory.
func (t *Toolbox) CreateDirectory(ctx context.Context, a CreateDirectoryArgs) (CreateDirectoryResult, error) {
	return use(ctx, t, "sandbox_create_directory", a, createDirectory)
}

func createDirectory(_ context.Context, s *sandbox, a CreateDirectoryArgs) (CreateDirectoryResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return CreateDirectoryResult{}, err
	}
	mkdir := s.files().Mkdir
	if a.Recursive {
		mkdir = s.files().MkdirAll
	}
	return CreateDirectoryResult{Path: p}, mkdir(p, 0)
}

// Delete is sandbox_delete.
func (t *Toolbox) Delete(ctx context.Context, a DeleteArgs) (DeleteResult, error) {
	return use(ctx, t, "sandbox_delete", a, remove)
}

func remove(_ context.Context, s *sandbox, a DeleteArgs) (DeleteResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return DeleteResult{}, err
	}
	// RemoveAll does not tell whether there was something.
	_, err = s.files().Lstat(p)
	if err == nil {
		rm := s.files().Remove
		if a.Recursive {
			rm = s.files().RemoveAll
		}
		err = rm(p)
	}
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
	if missing && a.Force {
		return DeleteResult{Path: p}, nil
	}
	return DeleteResult{Path: p, Deleted: err == nil}, err
}

// Exists is sandbox_exists.
func (t *Toolbox) Exists(ctx context.Context, a ExistsArgs) (ExistsResult, error) {
	return use(ctx, t, "sandbox_exists", a, exists)
}

func exists(_ context.Context, s *sandbox, a ExistsArgs) (ExistsResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return ExistsResult{}, err
	}
	is, err := s.files().Exists(p)
	return ExistsResult{Path: p, Exists: is}, err
}

// FileInfo is sandbox_file_info.
func (t *Toolbox) FileInfo(ctx context.Context, a FileInfoArgs) (FileInfoResult, error) {
	return use(ctx, t, "sandbox_file_info", a, fileInfo)
}

func fileInfo(_ context.Context, s *sandbox, a FileInfoArgs) (FileInfoResult, error) {
	p, err := s.path("path", a.Path)
	if err != nil {
		return FileInfoResult{}, err
	}
	i, err := s.files().Lstat(p)
	if err != nil {
		return FileInfoResult{}, err
	}
	return FileInfoResult{
		Path: p, Name: i.Name(), Type: typeOf(i.Mode()), Size: i.Size(),
		Permissions: octal(i.Mode()), Owner: int64(i.Owner()), Group: int64(i.Group()),
		ModifiedAt: timeText(i.ModTime()), AccessedAt: timeText(i.AccessTime()), CreatedAt: createdText(i.CreateTime()),
	}, nil
}

func typeOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symlink"
	}
	return "other"
}

// octal is of the permissions with the three bits above them, as chmod(1) has them.
func octal(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: unix.S_ISUID, fs.ModeSetgid: unix.S_ISGID, fs.ModeSticky: unix.S_ISVTX} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// A guest can set times that RFC 3339 has no text for.
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

func createdText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return timeText(at)
}

// wholeRunes is how many bytes are left without a character that was cut at the end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				break
			}
			return i
		}
	}
	return len(b)
}
