package sandboxtools

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"unicode/utf8"

	"golang.org/x/sys/unix"

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
