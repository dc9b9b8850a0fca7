package service

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/quota"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/vfs/hostfs"
)

// MaxListed is how many files one listing describes at most.
const MaxListed = 10_000

const (
	// defaultListed is how many files a listing describes by default.
	defaultListed = 1000

	// maxListedBytes bounds the paths of one listing.
	maxListedBytes = 4 << 20

	// minTarBytes is the least that bounds an archive of a folder.
	minTarBytes = 1 << 30
)

// contentServer is a writer to a client that selects ranges of the content itself, as HTTP does.
type contentServer interface {
	ServeContent(modified time.Time, content io.ReadSeeker)
}

// ReadFile writes a part of a regular file to w, of the content that it has in the beginning: a guest may
// append to it all the time.
func (sb *Sandbox) ReadFile(path string, r *requestjson.ReadIn, w io.Writer) (*resultjson.FileInfo, error) {
	f, err := sb.FS().Open(path)
	if err != nil {
		return nil, fileError(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	if err != nil {
		return nil, fileError(err)
	}
	n := max(0, info.Size()-r.Offset)
	if r.Limit > 0 {
		n = min(n, r.Limit)
	}
	part := io.NewSectionReader(f, r.Offset, n)
	if s, ok := w.(contentServer); ok {
		s.ServeContent(resultjson.ClampTime(info.ModTime()), part)
	} else if _, err = io.CopyN(w, part, n); err == io.EOF {
		err = &fs.PathError{Op: "read", Path: path, Err: hostfs.ErrChanged}
	}
	return resultjson.NewFileInfo(path, info), fileError(err)
}

// WriteFile replaces or makes a file, when all of r has been read.
func (sb *Sandbox) WriteFile(path string, r io.Reader, w *requestjson.WriteIn) (int64, error) {
	mode, err := modeBits(w.FileMode)
	if err != nil {
		return 0, err
	}
	n, err := sb.FS().WriteFrom(path, r, hostfs.WriteOptions{Mode: mode, Parents: w.Parents})
	return n, fileError(err)
}

// Stat describes a file, or the link itself.
func (sb *Sandbox) Stat(path string, w *requestjson.StatIn) (*resultjson.FileInfo, error) {
	stat := sb.FS().Stat
	if w.Links {
		stat = sb.FS().Lstat
	}
	info, err := stat(path)
	if err != nil {
		return nil, fileError(err)
	}
	described := resultjson.NewFileInfo(path, info)
	if info.Type() == fs.ModeSymlink {
		text, err := sb.FS().ReadLink(path)
		if err != nil {
			return nil, fileError(err)
		}
		described.Target, described.TargetBytes = resultjson.SplitText(text)
	}
	return described, nil
}

// FileList is a listing of a folder.
type FileList struct {
	Files     []*resultjson.FileInfo `json:"files"`
	Truncated bool                   `json:"truncated" doc:"There are more files than the limit, deeper folders than 256, or folders that the guest's user may not read."`
}

// ListFiles lists a folder, sorted by name; if it is recursive, everything below it. A limit of zero
// is the default.
func (sb *Sandbox) ListFiles(ctx context.Context, path string, w *requestjson.ListIn) (*FileList, error) {
	done, err := sb.account.Wait(ctx, quota.Listings)
	if err != nil {
		return nil, err
	}
	defer done()
	list, truncated, err := sb.FS().List(ctx, path, hostfs.ListOptions{
		Flat: !w.Recursive, Exclude: w.Exclude, Entries: min(cmp.Or(w.Limit, defaultListed), MaxListed), Bytes: maxListedBytes,
	})
	if err != nil {
		return nil, fileError(err)
	}
	l := &FileList{Files: make([]*resultjson.FileInfo, 0, len(list)), Truncated: truncated}
	for _, e := range list {
		l.Files = append(l.Files, resultjson.NewFileInfo(e.Path, e.Info))
	}
	return l, nil
}

// MakeFolder makes a folder. With parents it also makes missing parents, and an existing
// folder is not an error.
func (sb *Sandbox) MakeFolder(path string, w *requestjson.FolderIn) error {
	mode, err := modeBits(w.FileMode)
	if err != nil {
		return err
	}
	mkdir := sb.FS().Mkdir
	if w.Parents {
		mkdir = sb.FS().MkdirAll
	}
	return fileError(mkdir(path, mode))
}

// Move moves a file or a folder. It replaces a file by a file, and an empty folder by a folder.
func (sb *Sandbox) Move(from, to string) error {
	return fileError(sb.FS().Rename(from, to))
}

// Remove removes a file, a link or an empty folder; if it is recursive, a folder with its content.
func (sb *Sandbox) Remove(path string, w *requestjson.RemoveIn) error {
	remove := sb.FS().Remove
	if w.Recursive {
		if _, err := sb.FS().Lstat(path); err != nil {
			return fileError(err)
		}
		remove = sb.FS().RemoveAll
	}
	return fileError(remove(path))
}

// Tar writes an archive of a folder's content. It is bounded by the sandbox's disk limit, or by 1
// GiB if that is more.
func (sb *Sandbox) Tar(w io.Writer, path string) (hostfs.TarReport, error) {
	info, err := sb.FS().Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	if err != nil {
		return hostfs.TarReport{}, fileError(err)
	}
	report, err := sb.FS().Tar(w, path, hostfs.TarOptions{Bytes: max(sb.Limits().Disk, minTarBytes)})
	return report, fileError(err)
}

// Untar unpacks an archive into a folder.
func (sb *Sandbox) Untar(r io.Reader, path string, w *requestjson.UnpackIn) (resultjson.Unpacked, error) {
	if w.Parents {
		if err := sb.FS().MkdirAll(path, 0); err != nil {
			return resultjson.Unpacked{}, fileError(err)
		}
	}
	report, err := sb.FS().Untar(r, path, hostfs.UntarOptions{Bytes: sb.MaxUpload()})
	return resultjson.Unpacked{Entries: report.Entries, Bytes: report.Bytes}, fileError(err)
}

// modeBits returns the permissions, zero for the default.
func modeBits(m requestjson.FileMode) (fs.FileMode, error) {
	if m.Mode == "" {
		return 0, nil
	}
	bits, err := strconv.ParseUint(m.Mode, 8, 16)
	if err != nil || bits == 0 || bits > 0o777 {
		return 0, Refuse(Invalid, "mode: want 1 to 777, in octal")
	}
	return fs.FileMode(bits), nil
}
