package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"gaol/internal/mux"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// files are the files of the sandbox.
type files struct {
	sandbox *Sandbox
	ctx     context.Context // until Close
	end     context.CancelFunc
}

// Files implements sandbox.Sandbox.
func (s *Sandbox) Files() (hostfs.Files, error) {
	ctx, end := context.WithCancel(context.Background())
	return &files{s, ctx, end}, nil
}

// Close implements hostfs.Files.
func (f *files) Close() error {
	f.end()
	return nil
}

// on performs an operation on files.
func on[Out any](f *files, op string, in agent.FS) (Out, error) {
	out, err := call[Out](f.ctx, f.sandbox, op, in)
	return out, f.failed(op, string(in.Path), err)
}

// failed returns the error of an operation that may have been ended by Close.
func (f *files) failed(op, p string, err error) error {
	if err != nil && f.ctx.Err() != nil || errors.Is(err, sandbox.ErrClosed) {
		return &fs.PathError{Op: op, Path: p, Err: sandbox.ErrClosed}
	}
	return err
}

func (f *files) ReadFile(p string) ([]byte, error) {
	data, err := f.sandbox.bytes(f.ctx, "readFile", agent.FS{Path: agent.Text(p)}, hostfs.DefaultFile)
	return data, f.failed("open", p, err)
}

func (f *files) WriteFile(p string, data []byte, o hostfs.WriteOptions) error {
	_, err := on[json.RawMessage](f, "writeFile", agent.FS{Path: agent.Text(p), Data: data, Write: o})
	return err
}

func (f *files) Append(p string, data []byte, o hostfs.WriteOptions) error {
	_, err := on[json.RawMessage](f, "append", agent.FS{Path: agent.Text(p), Data: data, Write: o})
	return err
}

func (f *files) Stat(p string) (*hostfs.Info, error) {
	return f.describe("stat", p)
}
func (f *files) Lstat(p string) (*hostfs.Info, error) {
	return f.describe("lstat", p)
}

// describe performs an operation that describes a file.
func (f *files) describe(op, p string) (*hostfs.Info, error) {
	info, err := on[*hostfs.Info](f, op, agent.FS{Path: agent.Text(p)})
	if err == nil && info == nil {
		err = errAgent
	}
	return info, err
}

func (f *files) Exists(p string) (bool, error) {
	return on[bool](f, "exists", agent.FS{Path: agent.Text(p)})
}
func (f *files) ReadLink(p string) (string, error) {
	text, err := on[agent.Text](f, "readLink", agent.FS{Path: agent.Text(p)})
	return string(text), err
}

func (f *files) ReadDir(p string) ([]fs.DirEntry, error) {
	list, _, err := f.entries(f.ctx, "readDir", agent.FS{Path: agent.Text(p)}, isName)
	return dirEntries(list), f.failed("open", p, err)
}

// entries performs an operation whose output is entries, whose paths are valid.
func (f *files) entries(ctx context.Context, op string, in agent.FS, valid func(hostfs.Entry) bool) ([]hostfs.Entry, bool, error) {
	stream, _, err := open[struct{}](ctx, f.sandbox, op, in)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = stream.Close() }() // nothing was written
	defer context.AfterFunc(ctx, stream.Reset)()
	return readEntries(stream, valid)
}

// readEntries reads entries.
func readEntries(stream *mux.Stream, valid func(hostfs.Entry) bool) (list []hostfs.Entry, truncated bool, err error) {
	for {
		var batch agent.Listed
		if err := agent.Read(stream, agent.MaxReply, &batch); err != nil {
			return nil, false, closed(err)
		}
		for _, e := range batch.Entries {
			entry := hostfs.Entry{Path: string(e.Path), Info: e.Info}
			if e.Info == nil || !valid(entry) || len(list) == hostfs.DefaultEntries {
				return nil, false, errAgent
			}
			list = append(list, entry)
		}
		if batch.Done {
			return list, batch.Truncated, nil
		}
	}
}

// dirEntries returns entries of a folder.
func dirEntries(list []hostfs.Entry) []fs.DirEntry {
	out := make([]fs.DirEntry, 0, len(list))
	for _, e := range list {
		out = append(out, e.Info)
	}
	return out
}

// isName reports whether an entry's name can be that of a file in a folder.
func isName(e hostfs.Entry) bool {
	return isBelow("/", "/"+e.Name()) && !strings.Contains(e.Name(), "/")
}

// isBelow reports whether a path is that of a file below a folder.
func isBelow(dir, p string) bool {
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	return ok && rest != "" && path.Clean("/"+rest) == "/"+rest && !strings.Contains(rest, "\x00")
}

func (f *files) List(ctx context.Context, p string, o hostfs.ListOptions) ([]hostfs.Entry, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	in := agent.FS{Path: agent.Text(p), List: o}
	list, truncated, err := f.entries(ctx, "list", in, func(e hostfs.Entry) bool { return isBelow(p, e.Path) })
	return list, truncated, f.failed("list", p, err)
}

func (f *files) do(op string, in agent.FS) error {
	_, err := on[json.RawMessage](f, op, in)
	return err
}

func (f *files) Mkdir(p string, mode fs.FileMode) error {
	return f.do("mkdir", agent.FS{Path: agent.Text(p), Mode: mode})
}
func (f *files) MkdirAll(p string, mode fs.FileMode) error {
	return f.do("mkdirAll", agent.FS{Path: agent.Text(p), Mode: mode})
}
func (f *files) Symlink(text, p string) error {
	return f.do("symlink", agent.FS{Path: agent.Text(p), To: agent.Text(text)})
}
func (f *files) Rename(from, to string) error {
	return f.do("rename", agent.FS{Path: agent.Text(from), To: agent.Text(to)})
}
func (f *files) Chmod(p string, mode fs.FileMode) error {
	return f.do("chmod", agent.FS{Path: agent.Text(p), Mode: mode})
}
func (f *files) Remove(p string) error    { return f.do("remove", agent.FS{Path: agent.Text(p)}) }
func (f *files) RemoveAll(p string) error { return f.do("removeAll", agent.FS{Path: agent.Text(p)}) }

// sendTo performs an operation with the bytes of r.
func sendTo[Out any](f *files, op string, in agent.FS, r io.Reader) (Out, error) {
	var none Out
	stream, err := f.sandbox.send(op, in)
	if err != nil {
		return none, err
	}
	defer func() { _ = stream.Close() }() // the reply has arrived
	sent := make(chan error, 1)
	go func() {
		source := &errorReader{Reader: r}
		w := agent.ChunkWriter{W: stream}
		_, _ = io.Copy(w, source) // the agent reports other errors
		if source.err == nil {
			_ = w.Close()
		} else {
			_ = stream.CloseWrite() // the bytes are incomplete
		}
		sent <- source.err
	}()
	out, err := receive[Out](f.ctx, stream)
	if err != nil {
		select {
		case failed := <-sent:
			if failed != nil {
				err = failed
			}
		default: // r may block
		}
		return none, f.failed(op, string(in.Path), err)
	}
	return out, nil
}

// errorReader keeps the error of a reader.
type errorReader struct {
	io.Reader
	err error
}

// Read implements [io.Reader].
func (r *errorReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

func (f *files) WriteFrom(p string, r io.Reader, o hostfs.WriteOptions) (int64, error) {
	return sendTo[int64](f, "writeFrom", agent.FS{Path: agent.Text(p), Write: o}, r)
}

func (f *files) Untar(r io.Reader, dir string, o hostfs.UntarOptions) (hostfs.UntarReport, error) {
	return sendTo[hostfs.UntarReport](f, "untar", agent.FS{Path: agent.Text(dir), Untar: o}, r)
}

// visited reads the messages of an operation, at most some, and answers each by the error of visit.
func visited(stream *mux.Stream, most int, visit func(v *agent.Visited) error) (report json.RawMessage, err error) {
	for ; ; most-- {
		var v agent.Visited
		if err := agent.Read(stream, agent.MaxReply, &v); err != nil {
			return nil, closed(err)
		}
		if v.Done {
			return v.Report, v.Err.Decode()
		}
		if most == 0 {
			return nil, errAgent
		}
		err := visit(&v)
		if failed := agent.Write(stream, agent.Answer{Error: agent.Encode(err)}); failed != nil {
			return nil, closed(failed)
		}
		if err != nil && !errors.Is(err, fs.SkipDir) && !errors.Is(err, fs.SkipAll) {
			return nil, err
		}
	}
}

func (f *files) Walk(p string, visit hostfs.WalkFunc) error {
	stream, _, err := open[struct{}](f.ctx, f.sandbox, "walk", agent.FS{Path: agent.Text(p)})
	if err != nil {
		return f.failed("walk", p, err)
	}
	defer func() { _ = stream.Close() }() // nothing was written
	defer context.AfterFunc(f.ctx, stream.Reset)()
	_, err = visited(stream, 2*hostfs.DefaultEntries, func(v *agent.Visited) error { // twice for a folder that cannot be read
		if v.Info == nil && v.Err == nil || string(v.Path) != p && !isBelow(p, string(v.Path)) {
			return errAgent
		}
		return visit(string(v.Path), v.Info, v.Err.Decode())
	})
	return f.failed("walk", p, err)
}

func (f *files) Tar(w io.Writer, dir string, o hostfs.TarOptions) (report hostfs.TarReport, err error) {
	in := agent.FS{Path: agent.Text(dir), Bytes: o.Bytes, Entries: o.Entries, Skip: o.Skip, Owned: o.Owned, Left: o.Left != nil}
	stream, _, err := open[struct{}](f.ctx, f.sandbox, "tar", in)
	if err != nil {
		return report, f.failed("tar", dir, err)
	}
	defer func() { _ = stream.Close() }() // nothing was written
	defer context.AfterFunc(f.ctx, stream.Reset)()
	if _, err := io.Copy(w, &agent.ChunkReader{R: stream}); err != nil {
		return report, f.failed("tar", dir, err)
	}
	text, err := visited(stream, agent.MaxLeft, func(v *agent.Visited) error {
		if o.Left == nil {
			return errAgent
		}
		return o.Left(hostfs.Skip{Path: string(v.Path), Err: v.Err.Decode()})
	})
	if len(text) > 0 {
		err = errors.Join(err, json.Unmarshal(text, &report))
	}
	return report, f.failed("tar", dir, err)
}

// file is an open file.
type file struct {
	files   *files
	stream  *mux.Stream
	name    string
	info    *hostfs.Info
	unwatch func() bool // that files are closed

	mu     sync.Mutex
	offset int64
	rest   []fs.DirEntry
	listed bool
}

func (f *files) Open(p string) (hostfs.File, error) { return f.open(p, p) }

func (f *files) open(p, name string) (*file, error) {
	stream, info, err := open[*hostfs.Info](f.ctx, f.sandbox, "openFile", agent.FS{Path: agent.Text(p)})
	if err == nil && info == nil {
		stream.Reset()
		err = errAgent
	}
	if err != nil {
		return nil, f.failed("open", p, err)
	}
	return &file{files: f, stream: stream, name: name, info: info, unwatch: context.AfterFunc(f.ctx, stream.Reset)}, nil
}

// Stat implements [fs.File]. It describes the file when it was opened.
func (o *file) Stat() (fs.FileInfo, error) { return o.info, nil }

// Close implements [fs.File].
func (o *file) Close() error {
	o.unwatch()
	return o.stream.Close()
}

// ask asks the agent, and reads the output. One question is asked at a time.
func ask[Out any](o *file, in agent.ReadAt, read func() (Out, error)) (out Out, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := agent.Write(o.stream, in); err != nil {
		return out, o.error(closed(err))
	}
	var reply agent.Reply
	if err := agent.Read(o.stream, agent.MaxReply, &reply); err != nil {
		return out, o.error(closed(err))
	}
	if err = reply.Error.Decode(); err == nil {
		out, err = read()
	}
	if err != nil {
		return out, o.error(err)
	}
	return out, nil
}

// readAt reads at most len(p) bytes.
func (o *file) readAt(p []byte, offset int64) (int, error) {
	most := min(len(p), agent.MaxChunk)
	data, err := ask(o, agent.ReadAt{Offset: offset, Size: most}, func() ([]byte, error) { return readBytes(o.stream, int64(most)) })
	return copy(p, data), err
}

func (o *file) error(err error) error {
	if err = o.files.failed("read", o.name, err); err == io.EOF {
		return err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: o.name, Err: e.Err}
	}
	return &fs.PathError{Op: "read", Path: o.name, Err: err}
}

// ReadAt implements [io.ReaderAt].
func (o *file) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = o.readAt(p[n:], offset+int64(n))
		n += more
		if more == 0 && err == nil {
			err = errAgent
		}
	}
	return n, err
}

// Read implements [io.Reader].
func (o *file) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.readAt(p, o.offset)
	o.offset += int64(n)
	return n, err
}

// Seek implements [io.Seeker].
func (o *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.offset
	case io.SeekEnd:
		offset += o.info.Size()
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: o.name, Err: fs.ErrInvalid}
	}
	o.offset = offset
	return offset, nil
}

// ReadDir implements [fs.ReadDirFile].
func (o *file) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.listed {
		list, err := ask(o, agent.ReadAt{}, func() ([]hostfs.Entry, error) {
			list, _, err := readEntries(o.stream, isName)
			return list, err
		})
		if err != nil {
			return nil, err
		}
		o.rest, o.listed = dirEntries(list), true
	}
	if n <= 0 {
		n = len(o.rest)
	} else if len(o.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.rest))
	list := o.rest[:n]
	o.rest = o.rest[n:]
	return list, nil
}

// view is a folder as an [fs.FS].
type view struct {
	files *files
	dir   string
}

func (f *files) View(dir string) fs.FS { return &view{f, dir} }

// in calls do with the guest path of a name, by which errors name the file.
func in[T any](v *view, op, name string, do func(p string) (T, error)) (T, error) {
	var none T
	if !fs.ValidPath(name) {
		return none, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	out, err := do(path.Join(v.dir, name))
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return none, &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return out, err
}

// Open implements [fs.FS].
func (v *view) Open(name string) (fs.File, error) {
	return in(v, "open", name, func(p string) (fs.File, error) { return v.files.open(p, name) })
}

// ReadFile implements [fs.ReadFileFS].
func (v *view) ReadFile(name string) ([]byte, error) { return in(v, "open", name, v.files.ReadFile) }

// ReadDir implements [fs.ReadDirFS].
func (v *view) ReadDir(name string) ([]fs.DirEntry, error) {
	return in(v, "open", name, v.files.ReadDir)
}

// Stat implements [fs.StatFS].
func (v *view) Stat(name string) (fs.FileInfo, error) {
	return in(v, "stat", name, func(p string) (fs.FileInfo, error) { return v.files.Stat(p) })
}

// Lstat implements [fs.ReadLinkFS].
func (v *view) Lstat(name string) (fs.FileInfo, error) {
	return in(v, "lstat", name, func(p string) (fs.FileInfo, error) { return v.files.Lstat(p) })
}

// ReadLink implements [fs.ReadLinkFS].
func (v *view) ReadLink(name string) (string, error) {
	return in(v, "readlink", name, v.files.ReadLink)
}
