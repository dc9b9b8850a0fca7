package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/vfs"
	"gaol/vfs/hostfs"
)

// guestPath returns the absolute path in a sandbox for one of a call.
func guestPath(name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(string(vfs.Workspace), name)
	}
	clean, err := vfs.ParsePath(path.Clean(name))
	if err != nil {
		return "", fmt.Errorf("path: %w", err)
	}
	return string(clean), nil
}

// inSandbox calls do with a sandbox and a path in it.
func (e *endpoint) inSandbox(id, name string, do func(sb *service.Sandbox, path string) error) error {
	p, err := guestPath(name)
	if err != nil {
		return err
	}
	sb, err := e.acquire(id)
	if err != nil {
		return err
	}
	defer sb.Release()
	return e.fileError(p, do(sb, p))
}

// WriteArgs are the arguments of write_file.
type WriteArgs struct {
	SandboxID string `json:"sandboxId" jsonschema:"The sandbox."`
	Path      string `json:"path" jsonschema:"An absolute path, or one relative to /workspace. Missing folders are created."`
	Content   string `json:"content" jsonschema:"The new content. It replaces the old one."`
	Encoding  string `json:"encoding,omitempty" jsonschema:"utf8 (the default) or base64, for content that is not text."`
}

// WriteResult is the result of write_file.
type WriteResult struct {
	Path string `json:"path" jsonschema:"The absolute path."`
	Size int    `json:"size" jsonschema:"Bytes."`
	URI  string `json:"uri" jsonschema:"The file as a resource."`
}

func (e *endpoint) writeFile(_ context.Context, _ *mcp.CallToolRequest, a WriteArgs) (res *mcp.CallToolResult, out *WriteResult, err error) {
	content := []byte(a.Content)
	if a.Encoding == "base64" {
		if content, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return nil, nil, fmt.Errorf("content: %w", err)
		}
	}
	err = e.inSandbox(a.SandboxID, a.Path, func(sb *service.Sandbox, path string) error {
		out = &WriteResult{path, len(content), fileURI(sb.ID, path)}
		return sb.FS().WriteFile(path, content, hostfs.WriteOptions{Parents: true})
	})
	if err != nil {
		return nil, nil, err
	}
	return textResult(fmt.Sprintf("wrote %d bytes to %s", out.Size, out.Path)), out, nil
}

// ReadArgs are the arguments of read_file.
type ReadArgs struct {
	SandboxID string `json:"sandboxId" jsonschema:"The sandbox."`
	Path      string `json:"path" jsonschema:"An absolute path, or one relative to /workspace."`
	Offset    int64  `json:"offset,omitempty" jsonschema:"The byte to begin at; 0 by default."`
}

// ReadResult is the result of read_file.
type ReadResult struct {
	Path       string `json:"path" jsonschema:"The absolute path."`
	Content    string `json:"content" jsonschema:"At most some 40,000 characters; empty for an image."`
	Encoding   string `json:"encoding" jsonschema:"utf8, base64 if the content is not text, or image if the result has it as an image."`
	Size       int64  `json:"size" jsonschema:"Bytes of the whole file."`
	NextOffset int64  `json:"nextOffset,omitempty" jsonschema:"Where the rest begins. Absent at the end of the file."`
	URI        string `json:"uri" jsonschema:"The whole file as a resource."`
}

func (e *endpoint) readFile(_ context.Context, _ *mcp.CallToolRequest, a ReadArgs) (res *mcp.CallToolResult, out *ReadResult, err error) {
	var image *mcp.ImageContent
	err = e.inSandbox(a.SandboxID, a.Path, func(sb *service.Sandbox, path string) error {
		out = &ReadResult{Path: path, URI: fileURI(sb.ID, path)}
		if err := out.read(sb.FS(), a.Offset); err != nil || out.Encoding != "base64" || a.Offset != 0 {
			return err
		}
		image, err = readImage(sb, path)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if image != nil {
		out.Content, out.Encoding, out.NextOffset = "", "image", 0
		return &mcp.CallToolResult{Content: []mcp.Content{image}}, out, nil
	}
	res = textResult(out.Content)
	if out.NextOffset > 0 {
		note := fmt.Sprintf("[%d of %d bytes; the rest: read_file with offset %d]", out.NextOffset-a.Offset, out.Size, out.NextOffset)
		res.Content = append(res.Content, &mcp.TextContent{Text: note}, &mcp.ResourceLink{URI: out.URI, Name: path.Base(out.Path), Title: "The whole file", Size: &out.Size})
	}
	return res, out, nil
}

// read reads a part of a file.
func (r *ReadResult) read(files *hostfs.FS, offset int64) error {
	f, err := files.Open(r.Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errFolder
	}
	r.Size = info.Size()
	b := make([]byte, maxText+utf8.UTFMax)
	n, err := f.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	end := n < len(b)
	if b = b[:n]; !end {
		b = wholeCharacters(b[:maxText])
	}
	if !utf8.Valid(b) && len(b) > maxText/4*3 { // base64 is longer
		b, end = b[:maxText/4*3], false
	}
	r.Content, r.Encoding = encode(b)
	if !end {
		r.NextOffset = offset + int64(len(b))
	}
	return nil
}

// wholeCharacters removes a character at the end that is incomplete.
func wholeCharacters(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// ListArgs are the arguments of list_files.
type ListArgs struct {
	SandboxID string `json:"sandboxId" jsonschema:"The sandbox."`
	Path      string `json:"path,omitempty" jsonschema:"A folder; /workspace by default."`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"Whether to list the folders in it, too, except those called node_modules."`
}

// ListResult is the result of list_files.
type ListResult struct {
	Path      string  `json:"path" jsonschema:"The absolute path of the folder."`
	Files     []Entry `json:"files" jsonschema:"Sorted, each folder before its content."`
	Truncated bool    `json:"truncated" jsonschema:"Whether there are more than 1,000."`
}

// Entry is a file in a list.
type Entry struct {
	Path string `json:"path" jsonschema:"The path below the listed folder. Invalid UTF-8 becomes U+FFFD."`
	Type string `json:"type" jsonschema:"file, folder, link or other"`
	Size int64  `json:"size" jsonschema:"Bytes."`
}

const (
	maxEntries  = 1000
	maxListText = maxText // bytes of all paths
)

func (e *endpoint) listFiles(ctx context.Context, _ *mcp.CallToolRequest, a ListArgs) (res *mcp.CallToolResult, out *ListResult, err error) {
	err = e.inSandbox(a.SandboxID, a.Path, func(sb *service.Sandbox, path string) error {
		out = &ListResult{Path: path, Files: []Entry{}}
		return out.list(ctx, sb.FS(), a.Recursive)
	})
	if err != nil {
		return nil, nil, err
	}
	lines := []string{}
	for _, f := range out.Files {
		if f.Type == "folder" {
			f.Path += "/"
		}
		lines = append(lines, fmt.Sprintf("%9d %s", f.Size, f.Path))
	}
	if out.Truncated {
		lines = append(lines, "[there are more]")
	}
	if len(lines) == 0 {
		lines = append(lines, "(empty)")
	}
	return textResult(strings.Join(lines, "\n")), out, nil
}

func (r *ListResult) list(ctx context.Context, files *hostfs.FS, recursive bool) error {
	info, err := files.Stat(r.Path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errNoFolder
	}
	total := 0
	return files.Walk(r.Path, func(p string, info *hostfs.Info, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p == r.Path:
			return err
		case err != nil: // a folder that the guest has made unreadable is listed without content
			return nil
		}
		name := strings.ToValidUTF8(strings.TrimPrefix(strings.TrimPrefix(p, r.Path), "/"), "\uFFFD")
		if total += len(name); len(r.Files) == maxEntries || total > maxListText {
			r.Truncated = true
			return fs.SkipAll
		}
		r.Files = append(r.Files, Entry{name, typeOf(info), info.Size()})
		if info.IsDir() && (!recursive || info.Name() == "node_modules") {
			return fs.SkipDir
		}
		return nil
	})
}

func typeOf(info *hostfs.Info) string {
	switch {
	case info.IsDir():
		return "folder"
	case info.Mode().IsRegular():
		return "file"
	case info.Mode()&fs.ModeSymlink != 0:
		return "link"
	}
	return "other"
}

// maxResource bounds a file that is read as a resource.
const maxResource = 16 << 20

// addResources adds the files of sandboxes.
func (e *endpoint) addResources() {
	e.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "sandbox_file", Title: "File of a sandbox", URITemplate: uriScheme + "{id}/{+path}",
		Description: "A file of one of your sandboxes, by its absolute path. Output that is too long for a result is such a file.",
	}, e.readResource)
}

func (e *endpoint) readResource(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	id, name, ok := parseURI(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: mime.TypeByExtension(path.Ext(name))}
	err := e.inSandbox(id, name, func(sb *service.Sandbox, path string) error {
		b, err := readAll(sb, path)
		if err != nil {
			return err
		}
		if utf8.Valid(b) {
			c.Text = string(b)
		} else {
			c.Blob = b
		}
		return nil
	})
	if failed, ok := errors.AsType[*service.Error](err); ok && failed.Code == service.NotFound || errors.Is(err, fs.ErrNotExist) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	if c.MIMEType == "" {
		c.MIMEType = map[bool]string{true: "text/plain", false: "application/octet-stream"}[c.Blob == nil]
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

func readAll(sb *service.Sandbox, path string) ([]byte, error) {
	f, err := sb.FS().Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxResource+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxResource {
		return nil, errLargeFile
	}
	return b, nil
}
