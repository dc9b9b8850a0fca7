package agent

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"gaol/internal/mux"
	"gaol/vfs/hostfs"
)

// FS is the input of operations on files.
type FS struct {
	Path, To Text
	Data     []byte              `json:",omitempty"`
	Mode     fs.FileMode         `json:",omitempty"`
	Write    hostfs.WriteOptions `json:",omitzero"`
	List     hostfs.ListOptions  `json:",omitzero"`
	Untar    hostfs.UntarOptions `json:",omitzero"`

	Bytes   int64    `json:",omitempty"` // of a tar archive, as the following
	Entries int      `json:",omitempty"`
	Skip    []string `json:",omitempty"`
	Owned   bool     `json:",omitempty"`
	Left    bool     `json:",omitempty"` // whether remote wants the files that it lacks
}

// Listed is a batch of the output of list, readDir and a folder's ReadAt.
type Listed struct {
	Entries   []Entry `json:",omitempty"`
	Done      bool    `json:",omitempty"` // there are no more
	Truncated bool    `json:",omitempty"`
}

// batchSize is the number of entries of a Listed, which with the longest paths is within MaxReply.
const batchSize = 128

// sendEntries replies with entries or err, which it returns, and otherwise errReplied.
func sendEntries(s *mux.Stream, list []Entry, truncated bool, err error) error {
	if err != nil {
		return err
	}
	err = Write(s, Reply{})
	for batch := range slices.Chunk(list, batchSize) {
		if err == nil {
			err = Write(s, Listed{Entries: batch})
		}
	}
	if err == nil {
		err = Write(s, Listed{Done: true, Truncated: truncated})
	}
	return cmp.Or(err, errReplied)
}

// sendBytes replies with bytes or err, as sendEntries.
func sendBytes(s *mux.Stream, data []byte, err error) error {
	if err != nil {
		return err
	}
	w := ChunkWriter{s}
	if err = Write(s, Reply{}); err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	return cmp.Or(err, errReplied)
}

// Entry is a [hostfs.Entry].
type Entry struct {
	Path Text
	Info *hostfs.Info
}

// Visited is a message of walk, or names a file that a tar archive lacks. Remote answers each but the last one with an Error.
type Visited struct {
	Path Text         `json:",omitempty"`
	Info *hostfs.Info `json:",omitempty"`
	Err  *Error       `json:",omitempty"`
	Done bool         `json:",omitempty"`

	Report json.RawMessage `json:",omitempty"` // with Done
}

// ReadAt is the input of readAt.
type ReadAt struct {
	Number
	Offset int64
	Size   int
}

// MaxChunk bounds a chunk of bytes.
const MaxChunk = 256 << 10

// ChunkWriter writes chunks of bytes. Close ends them.
type ChunkWriter struct{ W io.Writer }

// Write implements [io.Writer].
func (c ChunkWriter) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(len(p), n+MaxChunk)]
		if _, err = c.W.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(part))), part...)); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// Close writes the end.
func (c ChunkWriter) Close() error {
	_, err := c.W.Write(make([]byte, 4))
	return err
}

// ChunkReader reads the chunks of a ChunkWriter.
type ChunkReader struct {
	R    io.Reader
	left uint32
	end  bool
}

// Read implements [io.Reader].
func (c *ChunkReader) Read(p []byte) (n int, err error) {
	if c.left == 0 && !c.end {
		var head [4]byte
		if _, err := io.ReadFull(c.R, head[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		c.left = binary.BigEndian.Uint32(head[:])
		c.end = c.left == 0
		if c.left > MaxChunk {
			return 0, fmt.Errorf("agent: a chunk of %d bytes", c.left)
		}
	}
	if c.end {
		return 0, io.EOF
	}
	n, err = c.R.Read(p[:min(uint32(len(p)), c.left)])
	c.left -= uint32(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// fileSystem returns the files of the sandbox.
func (a *Agent) fileSystem() (hostfs.Files, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files == nil {
		files, err := a.sandbox.Files()
		if err != nil {
			return nil, err
		}
		a.files = files
	}
	return a.files, nil
}

// with returns an operation on the files that uses its stream.
func with(do func(a *Agent, s *mux.Stream, f hostfs.Files, in *FS) (out any, err error)) operation {
	return of(func(a *Agent, s *mux.Stream, in *FS) (any, error) {
		f, err := a.fileSystem()
		if err != nil {
			return nil, err
		}
		return do(a, s, f, in)
	})
}

// on returns an operation on the files.
func on(do func(f hostfs.Files, in *FS) (out any, err error)) operation {
	return with(func(_ *Agent, _ *mux.Stream, f hostfs.Files, in *FS) (any, error) { return do(f, in) })
}

func init() {
	maps.Copy(operations, map[string]operation{
		"readFile": with(func(_ *Agent, s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
			data, err := f.ReadFile(string(in.Path))
			return nil, sendBytes(s, data, err)
		}),
		"readDir": with(func(_ *Agent, s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
			list, err := infos(f.ReadDir(string(in.Path)))
			return nil, sendEntries(s, list, false, err)
		}),
		"list": with(func(a *Agent, s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
			list, truncated, err := f.List(a.until(s), string(in.Path), in.List)
			return nil, sendEntries(s, mapped(list, func(e hostfs.Entry) Entry { return Entry{Text(e.Path), e.Info} }), truncated, err)
		}),
		"writeFrom": with(func(_ *Agent, s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
			return f.WriteFrom(string(in.Path), &ChunkReader{R: s}, in.Write)
		}),
		"untar": with(func(_ *Agent, s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
			return f.Untar(&ChunkReader{R: s}, string(in.Path), in.Untar)
		}),
		"openFile": with((*Agent).openFileSystem),
		"tar":      with((*Agent).tar),
		"walk":     with((*Agent).walk),

		"writeFile": on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.WriteFile(string(in.Path), in.Data, in.Write) }),
		"append":    on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Append(string(in.Path), in.Data, in.Write) }),
		"stat":      on(func(f hostfs.Files, in *FS) (any, error) { return f.Stat(string(in.Path)) }),
		"lstat":     on(func(f hostfs.Files, in *FS) (any, error) { return f.Lstat(string(in.Path)) }),
		"exists":    on(func(f hostfs.Files, in *FS) (any, error) { return f.Exists(string(in.Path)) }),
		"readLink": on(func(f hostfs.Files, in *FS) (any, error) {
			text, err := f.ReadLink(string(in.Path))
			return Text(text), err
		}),
		"mkdir":     on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Mkdir(string(in.Path), in.Mode) }),
		"mkdirAll":  on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.MkdirAll(string(in.Path), in.Mode) }),
		"symlink":   on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Symlink(string(in.To), string(in.Path)) }),
		"rename":    on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Rename(string(in.Path), string(in.To)) }),
		"chmod":     on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Chmod(string(in.Path), in.Mode) }),
		"remove":    on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.Remove(string(in.Path)) }),
		"removeAll": on(func(f hostfs.Files, in *FS) (any, error) { return nil, f.RemoveAll(string(in.Path)) }),
	})
}

// infos returns the descriptions of entries.
func infos(list []fs.DirEntry, err error) (out []Entry, failed error) {
	for _, e := range list {
		info, failed := e.Info()
		if errors.Is(failed, fs.ErrNotExist) { // the guest has just removed it
			continue
		} else if failed != nil {
			return nil, failed
		}
		if i, ok := info.(*hostfs.Info); ok {
			out = append(out, Entry{Info: i})
		}
	}
	return out, err
}

// openFileSystem opens a file, and answers each ReadAt by bytes, or of size 0 by the entries of a folder.
func (a *Agent) openFileSystem(s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
	file, err := f.Open(string(in.Path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := Write(s, reply(info)); err != nil {
		return nil, errReplied
	}
	for {
		var at ReadAt
		if err := Read(s, MaxRequest, &at); err != nil {
			return nil, errReplied
		}
		if at.Size == 0 {
			list, failed := infos(file.ReadDir(-1))
			err = sendEntries(s, list, false, failed)
		} else {
			data := make([]byte, min(at.Size, MaxChunk))
			n, failed := file.ReadAt(data, at.Offset)
			if n > 0 && failed == io.EOF {
				failed = nil
			}
			err = sendBytes(s, data[:n], failed)
		}
		if !errors.Is(err, errReplied) && Write(s, Reply{Error: Encode(err)}) != nil {
			return nil, errReplied
		}
	}
}

// visit sends a message, and returns the error of the answer.
func visit(s *mux.Stream, v Visited) error {
	if err := Write(s, v); err != nil {
		return err
	}
	var answer Answer
	if err := Read(s, MaxRequest, &answer); err != nil {
		return err
	}
	return answer.Error.Decode()
}

// walk visits files.
func (a *Agent) walk(s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
	if err := Write(s, Reply{}); err != nil {
		return nil, errReplied
	}
	err := f.Walk(string(in.Path), func(path string, info *hostfs.Info, err error) error {
		return visit(s, Visited{Path: Text(path), Info: info, Err: Encode(err)})
	})
	_ = Write(s, Visited{Done: true, Err: Encode(err)}) // the session may have ended
	return nil, errReplied
}

// tar packs files.
func (a *Agent) tar(s *mux.Stream, f hostfs.Files, in *FS) (any, error) {
	if err := Write(s, Reply{}); err != nil {
		return nil, errReplied
	}
	o := hostfs.TarOptions{Bytes: in.Bytes, Entries: in.Entries, Skip: in.Skip, Owned: in.Owned}
	var left []Visited
	if in.Left {
		o.Left = func(skip hostfs.Skip) error {
			if len(left) < MaxLeft {
				left = append(left, Visited{Path: Text(skip.Path), Err: Encode(skip.Err)})
			}
			return nil
		}
	}
	w := ChunkWriter{s}
	report, err := f.Tar(w, string(in.Path), o)
	if w.Close() != nil {
		return nil, errReplied
	}
	for _, v := range left {
		if failed := visit(s, v); failed != nil {
			err = failed
			break
		}
	}
	text, failed := json.Marshal(report)
	_ = Write(s, Visited{Done: true, Err: Encode(errors.Join(err, failed)), Report: text}) // the session may have ended
	return nil, errReplied
}

// MaxLeft bounds the reports about files that an archive leaves out.
const MaxLeft = 10_000
