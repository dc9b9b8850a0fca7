package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"gaol/internal/session"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/vfs/hostfs"
)

// FS is the file tree of a sandbox, as [hostfs.FS] is. Its paths are absolute and clean; they need not
// be UTF-8. Content is transferred as it is read or written, with a bounded amount on the way.
type FS struct{ sb *Sandbox }

// FS returns the file tree of the sandbox.
func (sb *Sandbox) FS() *FS { return &FS{sb} }

// in names a file in requests.
func (f *FS) in(path string) (in requestjson.InFile) {
	in.InSandbox = f.sb.in()
	in.Path, in.PathBytes = requestjson.SplitPath(path)
	return in
}

// octal encodes permissions for requests; empty for the default.
func octal(m fs.FileMode) requestjson.FileMode {
	if m == 0 {
		return requestjson.FileMode{}
	}
	return requestjson.FileMode{Mode: fmt.Sprintf("%o", uint32(m))}
}

// maxFile bounds what ReadFile returns, as package hostfs does by default.
const maxFile = 64 << 20

// ReadFile returns the content of a regular file of at most 64 MiB.
func (f *FS) ReadFile(ctx context.Context, path string) ([]byte, error) {
	var content bytes.Buffer
	in := requestjson.ReadIn{InFile: f.in(path), Limit: maxFile + 1}
	if _, err := download[*FileInfo](ctx, f, "readFile", "read file", in, &content); err != nil {
		return content.Bytes(), err
	}
	if content.Len() > maxFile {
		return nil, wrap("read file", &hostfs.LimitError{What: "bytes", Limit: maxFile})
	}
	return content.Bytes(), nil
}

// ReadTo writes the content of a regular file to w, as much as it has when the server opens it. If
// w blocks, nothing else on the connection does.
func (f *FS) ReadTo(ctx context.Context, path string, w io.Writer) (*FileInfo, error) {
	return download[*FileInfo](ctx, f, "readFile", "read file", requestjson.ReadIn{InFile: f.in(path)}, w)
}

// WriteFile replaces the content of a file by data, as [hostfs.FS.WriteFrom] does.
func (f *FS) WriteFile(ctx context.Context, path string, data []byte, o hostfs.WriteOptions) error {
	_, err := f.WriteFrom(ctx, path, bytes.NewReader(data), o)
	return err
}

// WriteFrom is WriteFile for the content of r. The new content appears when all of it has been written.
// If it fails before, it may still be reading from r when it returns.
func (f *FS) WriteFrom(ctx context.Context, path string, r io.Reader, o hostfs.WriteOptions) (*FileInfo, error) {
	in := requestjson.WriteIn{InFile: f.in(path), FileMode: octal(o.Mode), Parents: o.Parents}
	return call[*FileInfo](ctx, f.sb.c, message{Request: session.Request{Method: "writeFile"}, doing: "write file", in: in, stdin: r})
}

// Stat describes the file that a path leads to.
func (f *FS) Stat(ctx context.Context, path string) (*FileInfo, error) {
	return get[*FileInfo](ctx, f.sb.c, "statFile", "stat", requestjson.StatIn{InFile: f.in(path)})
}

// Lstat is Stat for a link itself.
func (f *FS) Lstat(ctx context.Context, path string) (*FileInfo, error) {
	in := requestjson.StatIn{InFile: f.in(path), FileStat: requestjson.FileStat{Links: true}}
	return get[*FileInfo](ctx, f.sb.c, "statFile", "stat", in)
}

// ListOptions select files. The zero value selects at most 1,000 files of one folder.
type ListOptions = requestjson.FolderList

// List lists a folder, sorted by name. It reports whether there are more files than it has listed.
func (f *FS) List(ctx context.Context, path string, o ListOptions) (files []*FileInfo, truncated bool, err error) {
	in := requestjson.ListIn{InFile: f.in(path), FolderList: o}
	list, err := get[struct {
		Files     []*FileInfo
		Truncated bool
	}](ctx, f.sb.c, "listFiles", "list", in)
	return list.Files, list.Truncated, err
}

// Mkdir makes a folder in an existing one. Zero means the permissions 0o755.
func (f *FS) Mkdir(ctx context.Context, path string, mode fs.FileMode) error {
	return f.mkdir(ctx, path, requestjson.FolderMake{FileMode: octal(mode)})
}

// MkdirAll makes a folder and its missing parents. An existing folder is not an error.
func (f *FS) MkdirAll(ctx context.Context, path string, mode fs.FileMode) error {
	return f.mkdir(ctx, path, requestjson.FolderMake{FileMode: octal(mode), Parents: true})
}

func (f *FS) mkdir(ctx context.Context, path string, m requestjson.FolderMake) error {
	return f.sb.c.do(ctx, "makeFolder", "mkdir", requestjson.FolderIn{InFile: f.in(path), FolderMake: m})
}

// Remove removes a file, a link or an empty folder.
func (f *FS) Remove(ctx context.Context, path string) error {
	return f.sb.c.do(ctx, "removeFile", "remove", requestjson.RemoveIn{InFile: f.in(path)})
}

// RemoveAll removes a file, or a folder with its content. It must exist.
func (f *FS) RemoveAll(ctx context.Context, path string) error {
	in := requestjson.RemoveIn{InFile: f.in(path), FileRemove: requestjson.FileRemove{Recursive: true}}
	return f.sb.c.do(ctx, "removeFile", "remove", in)
}

// Rename moves a file, a folder or a link. It replaces a file by a file, and an empty folder by a
// folder.
func (f *FS) Rename(ctx context.Context, from, to string) error {
	in := requestjson.MoveIn{InSandbox: f.sb.in()}
	in.From, in.FromBytes = requestjson.SplitPath(from)
	in.To, in.ToBytes = requestjson.SplitPath(to)
	return f.sb.c.do(ctx, "moveFile", "rename", in)
}

// Tar writes the content of a folder to w as an archive. It returns how many files the archive lacks,
// because the guest's user may not read them, or they are sockets and pipes.
func (f *FS) Tar(ctx context.Context, w io.Writer, dir string) (skipped int, err error) {
	packed, err := download[struct{ Skipped int }](ctx, f, "packFolder", "pack folder", f.in(dir), w)
	return packed.Skipped, err
}

// UntarOptions configure [FS.Untar].
type UntarOptions = requestjson.FolderUnpack

// Untar unpacks an archive into a folder. It may still be reading from r when it returns an error.
func (f *FS) Untar(ctx context.Context, r io.Reader, dir string, o UntarOptions) (hostfs.UntarReport, error) {
	in := requestjson.UnpackIn{InFile: f.in(dir), FolderUnpack: o}
	return call[hostfs.UntarReport](ctx, f.sb.c, message{Request: session.Request{Method: "unpackFolder"}, doing: "unpack folder", in: in, stdin: r})
}

// download performs an operation whose output is data.
func download[R any](ctx context.Context, f *FS, method, doing string, in any, w io.Writer) (R, error) {
	return call[R](ctx, f.sb.c, message{Request: session.Request{Method: method}, doing: doing, in: in, handle: func(frame session.Frame) error {
		_, err := w.Write(frame.Body)
		return err
	}})
}

// FileInfo describes a file. It is an [fs.FileInfo].
type FileInfo struct {
	Path   string // in the sandbox, as it was requested or listed
	Target string // the text of a link, if Stat or Lstat described the link itself

	size     int64
	mode     fs.FileMode
	modified time.Time
}

// Name is the last component of the path.
func (i *FileInfo) Name() string { return path.Base(i.Path) }

// Size is in bytes.
func (i *FileInfo) Size() int64 { return i.size }

// Mode is the type and the permissions.
func (i *FileInfo) Mode() fs.FileMode { return i.mode }

// ModTime is when its content was last changed. The guest can set it to any time.
func (i *FileInfo) ModTime() time.Time { return i.modified }

// IsDir reports whether it is a folder.
func (i *FileInfo) IsDir() bool { return i.mode.IsDir() }

// Sys returns nil.
func (i *FileInfo) Sys() any { return nil }

// UnmarshalJSON decodes what servers send.
func (i *FileInfo) UnmarshalJSON(text []byte) error {
	var sent resultjson.FileInfo
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	mode, err := sent.FileMode()
	*i = FileInfo{exactText(sent.Path, sent.PathBytes), exactText(sent.Target, sent.TargetBytes), sent.Size, mode, sent.Modified}
	return err
}

// exactText returns a text, or its bytes if it is not UTF-8.
func exactText(text string, bytes []byte) string {
	if len(bytes) > 0 {
		return string(bytes)
	}
	return text
}
