package service

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

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
func (sb *Sandbox) ReadFile(ctx context.Context, c *Call, r *requestjson.ReadIn) (*resultjson.FileInfo, error) {
	f, err := sb.FS().Open(r.Path)
	if err != nil {
		return nil, fileError(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: r.Path, Err: unix.EISDIR}
	}
	if err != nil {
		return nil, fileError(err)
	}
	n := max(0, info.Size()-r.Offset)
	if r.Limit > 0 {
		n = min(n, r.Limit)
	}
	part := io.NewSectionReader(f, r.Offset, n)
	to := c.Download(ctx)
	if s, ok := to.(contentServer); ok {
		s.ServeContent(resultjson.ClampTime(info.ModTime()), part)
	} else if _, err = io.CopyN(to, part, n); err == io.EOF {
		err = &fs.PathError{Op: "read", Path: r.Path, Err: hostfs.ErrChanged}
	}
	return resultjson.NewFileInfo(r.Path, info), fileError(err)
}

// WriteFile replaces or makes a file, when all of the upload has been read.
func (sb *Sandbox) WriteFile(ctx context.Context, c *Call, w *requestjson.WriteIn) (*resultjson.FileInfo, error) {
	data, err := c.Upload(ctx, sb.MaxUpload())
	if err != nil {
		return nil, err
	}
	if _, err := sb.FS().WriteFrom(w.Path, data, hostfs.WriteOptions{Mode: modeBits(w.FileMode), Parents: w.Parents}); err != nil {
		return nil, fileError(err)
	}
	return sb.Stat(ctx, c, &requestjson.StatIn{InFile: w.InFile})
}

// Stat describes a file, or the link itself.
func (sb *Sandbox) Stat(_ context.Context, _ *Call, in *requestjson.StatIn) (*resultjson.FileInfo, error) {
	stat := sb.FS().Stat
	if in.Links {
		stat = sb.FS().Lstat
	}
	info, err := stat(in.Path)
	if err != nil {
		return nil, fileError(err)
	}
	described := resultjson.NewFileInfo(in.Path, info)
	if info.Type() == fs.ModeSymlink {
		text, err := sb.FS().ReadLink(in.Path)
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
func (sb *Sandbox) ListFiles(ctx context.Context, _ *Call, in *requestjson.ListIn) (*FileList, error) {
	list, truncated, err := sb.FS().List(ctx, in.Path, hostfs.ListOptions{
		Flat: !in.Recursive, Exclude: in.Exclude, Entries: min(cmp.Or(in.Limit, defaultListed), MaxListed), Bytes: maxListedBytes,
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
func (sb *Sandbox) MakeFolder(_ context.Context, _ *Call, in *requestjson.FolderIn) (None, error) {
	mkdir := sb.FS().Mkdir
	if in.Parents {
		mkdir = sb.FS().MkdirAll
	}
	return None{}, fileError(mkdir(in.Path, modeBits(in.FileMode)))
}

// Move moves a file or a folder. It replaces a file by a file, and an empty folder by a folder.
func (sb *Sandbox) Move(_ context.Context, _ *Call, in *requestjson.MoveIn) (None, error) {
	return None{}, fileError(sb.FS().Rename(in.From, in.To))
}

// Remove removes a file, a link or an empty folder; if it is recursive, a folder with its content.
func (sb *Sandbox) Remove(_ context.Context, _ *Call, in *requestjson.RemoveIn) (None, error) {
	remove := sb.FS().Remove
	if in.Recursive {
		if _, err := sb.FS().Lstat(in.Path); err != nil {
			return None{}, fileError(err)
		}
		remove = sb.FS().RemoveAll
	}
	return None{}, fileError(remove(in.Path))
}

// Packed counts the files that an archive lacks.
type Packed struct {
	Skipped int `json:"skipped" doc:"Files that the archive lacks."`
}

// String returns the number, for a trailer.
func (p Packed) String() string { return strconv.Itoa(p.Skipped) }

// Tar writes an archive of a folder's content. It is bounded by the sandbox's disk limit, or by 1
// GiB if that is more.
func (sb *Sandbox) Tar(ctx context.Context, c *Call, in *requestjson.InFile) (Packed, error) {
	info, err := sb.FS().Stat(in.Path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: in.Path, Err: unix.ENOTDIR}
	}
	if err != nil {
		return Packed{}, fileError(err)
	}
	report, err := sb.FS().Tar(c.Download(ctx), in.Path, hostfs.TarOptions{Bytes: max(sb.Limits().Disk, minTarBytes)})
	return Packed{report.Skipped}, fileError(err)
}

// Untar unpacks an archive into a folder.
func (sb *Sandbox) Untar(ctx context.Context, c *Call, in *requestjson.UnpackIn) (out hostfs.UntarReport, err error) {
	data, err := c.Upload(ctx, sb.MaxUpload())
	if err != nil {
		return out, err
	}
	if in.Parents {
		if err := sb.FS().MkdirAll(in.Path, 0); err != nil {
			return out, fileError(err)
		}
	}
	report, err := sb.FS().Untar(data, in.Path, hostfs.UntarOptions{Bytes: sb.MaxUpload()})
	return report, fileError(err)
}

// modeBits returns the permissions, zero for the default.
func modeBits(m requestjson.FileMode) fs.FileMode {
	bits, _ := strconv.ParseUint(m.Mode, 8, 16) // the schema has its pattern
	return fs.FileMode(bits)
}
