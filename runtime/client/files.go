package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"gaol/internal/session"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// FS is the file tree of a sandbox, as [hostfs.FS] is. Its paths are absolute and clean; they need not
// be UTF-8. Content is transferred as it is read or written, with a bounded amount on the way.
type FS struct{ sb *Sandbox }

// FS returns the file tree of the sandbox.
func (sb *Sandbox) FS() *FS { return &FS{sb} }

// fileParams are the parameters of the methods on files.
type fileParams struct {
	Sandbox   string `json:"sandbox"`
	Path      string `json:"path,omitempty"`
	PathBytes []byte `json:"pathBytes,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Parents   bool   `json:"createParents,omitempty"`
	Links     bool   `json:"links,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

func (f *FS) params(path string) (p fileParams) {
	p.Sandbox = f.sb.id
	p.Path, p.PathBytes = splitPath(path)
	return p
}

// splitPath returns a path as text, or its bytes if it is not UTF-8.
func splitPath(path string) (text string, bytes []byte) {
	if utf8.ValidString(path) {
		return path, nil
	}
	return "", []byte(path)
}

// octal returns permissions as requests have them; empty for the default.
func octal(m fs.FileMode) string {
	if m == 0 {
		return ""
	}
	return fmt.Sprintf("%o", uint32(m))
}

// maxFile bounds what ReadFile returns, as package hostfs does by default.
const maxFile = 64 << 20

// ReadFile returns the content of a regular file of at most 64 MiB.
func (f *FS) ReadFile(ctx context.Context, path string) ([]byte, error) {
	var content bytes.Buffer
	_, err := f.ReadTo(ctx, path, &limited{&content, maxFile})
	return content.Bytes(), err
}

// limited fails when it has been written more than a number of bytes.
type limited struct {
	*bytes.Buffer
	most int
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.most {
		return 0, &hostfs.LimitError{What: "bytes", Limit: int64(l.most)}
	}
	return l.Buffer.Write(p)
}

// ReadTo writes the content of a regular file to w, as much as it has when the server opens it. If
// w blocks, nothing else on the connection does.
func (f *FS) ReadTo(ctx context.Context, path string, w io.Writer) (*FileInfo, error) {
	var info FileInfo
	err := f.sb.c.transfer(ctx, "readFile", f.params(path), nil, w, &info)
	return &info, err
}

// WriteFile replaces the content of a file by data, as [hostfs.FS.WriteFrom] does.
func (f *FS) WriteFile(ctx context.Context, path string, data []byte, o hostfs.WriteOptions) error {
	_, err := f.WriteFrom(ctx, path, bytes.NewReader(data), o)
	return err
}

// WriteFrom is WriteFile for the content of r. The new content appears when all of it has been written.
// If it fails before, it may still be reading from r when it returns.
func (f *FS) WriteFrom(ctx context.Context, path string, r io.Reader, o hostfs.WriteOptions) (*FileInfo, error) {
	p := f.params(path)
	p.Mode, p.Parents = octal(o.Mode), o.Parents
	var info FileInfo
	err := f.sb.c.transfer(ctx, "writeFile", p, r, nil, &info)
	return &info, err
}

// Stat describes the file that a path leads to.
func (f *FS) Stat(ctx context.Context, path string) (*FileInfo, error) {
	return f.stat(ctx, f.params(path))
}

// Lstat is Stat for a link itself.
func (f *FS) Lstat(ctx context.Context, path string) (*FileInfo, error) {
	p := f.params(path)
	p.Links = true
	return f.stat(ctx, p)
}

func (f *FS) stat(ctx context.Context, p fileParams) (*FileInfo, error) {
	var info FileInfo
	err := f.do(ctx, "stat", p, &info)
	return &info, err
}

// ListOptions say what to list. The zero value is at most 1,000 files of one folder.
type ListOptions struct {
	Recursive bool // list everything below the folder
	Limit     int  // of files, at most 10,000; zero means 1,000
}

// List lists a folder, sorted by name. It reports whether there are more files than it has listed.
func (f *FS) List(ctx context.Context, path string, o ListOptions) (files []*FileInfo, truncated bool, err error) {
	p := f.params(path)
	p.Recursive, p.Limit = o.Recursive, o.Limit
	var list struct {
		Files     []*FileInfo `json:"files"`
		Truncated bool        `json:"truncated"`
	}
	err = f.do(ctx, "listFiles", p, &list)
	return list.Files, list.Truncated, err
}

// Mkdir makes a folder in an existing one. Zero means the permissions 0o755.
func (f *FS) Mkdir(ctx context.Context, path string, mode fs.FileMode) error {
	p := f.params(path)
	p.Mode = octal(mode)
	return f.do(ctx, "makeDir", p, nil)
}

// MkdirAll makes a folder and its missing parents. An existing folder is no error.
func (f *FS) MkdirAll(ctx context.Context, path string, mode fs.FileMode) error {
	p := f.params(path)
	p.Mode, p.Parents = octal(mode), true
	return f.do(ctx, "makeDir", p, nil)
}

// Remove removes a file, a link or an empty folder.
func (f *FS) Remove(ctx context.Context, path string) error {
	return f.do(ctx, "remove", f.params(path), nil)
}

// RemoveAll removes a file, or a folder with its content. It must exist.
func (f *FS) RemoveAll(ctx context.Context, path string) error {
	p := f.params(path)
	p.Recursive = true
	return f.do(ctx, "remove", p, nil)
}

// moveParams are the parameters of move.
type moveParams struct {
	Sandbox   string `json:"sandbox"`
	From      string `json:"from,omitempty"`
	FromBytes []byte `json:"fromBytes,omitempty"`
	To        string `json:"to,omitempty"`
	ToBytes   []byte `json:"toBytes,omitempty"`
}

// Rename moves a file, a folder or a link. It replaces a file by a file, and an empty folder by a
// folder.
func (f *FS) Rename(ctx context.Context, from, to string) error {
	p := moveParams{Sandbox: f.sb.id}
	p.From, p.FromBytes = splitPath(from)
	p.To, p.ToBytes = splitPath(to)
	return f.do(ctx, "move", p, nil)
}

// Tar writes the content of a folder to w as an archive. It returns how many files the archive lacks,
// because the guest's user may not read them, or they are sockets and pipes.
func (f *FS) Tar(ctx context.Context, w io.Writer, dir string) (skipped int, err error) {
	var packed struct {
		Skipped int `json:"skipped"`
	}
	err = f.sb.c.transfer(ctx, "readTar", f.params(dir), nil, w, &packed)
	return packed.Skipped, err
}

// UntarOptions say how to unpack an archive.
type UntarOptions struct {
	Parents bool // make the folder and its parents if they are missing
}

// Untar unpacks an archive into a folder. It may still be reading from r when it returns an error.
func (f *FS) Untar(ctx context.Context, r io.Reader, dir string, o UntarOptions) (report hostfs.UntarReport, err error) {
	p := f.params(dir)
	p.Parents = o.Parents
	err = f.sb.c.transfer(ctx, "writeTar", p, r, nil, &report)
	return report, err
}

func (f *FS) do(ctx context.Context, method string, params, result any) error {
	return wrap(method, f.sb.c.do(ctx, method, params, result))
}

// transfer makes a request whose input is read from in, and whose output is written to out. Both may
// be nil.
func (c *Client) transfer(ctx context.Context, method string, params any, in io.Reader, out io.Writer, result any) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var failed error
	err := c.exchange(running, method, params, runtime.RunOptions{Stdin: in}, func(f session.Frame) {
		if f.Kind != session.KindStdout || failed != nil || out == nil {
			return
		}
		if _, failed = out.Write(f.Body); failed != nil {
			stop(failed)
		}
	}, func(text json.RawMessage) error { return json.Unmarshal(text, result) })
	if failed != nil {
		return wrap(method, failed)
	}
	return err
}
