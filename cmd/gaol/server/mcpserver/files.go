package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/vfs"
)

// fileTools are the tools for files.
func fileTools() []*tool {
	return []*tool{
		define(tool{repeated: true}, operation.Operation{
			Name: "write_file", Summary: "Write a file", Doc: "Writes a file in a sandbox. An existing one is replaced.",
		}, writeFile),
		define(tool{}, operation.Operation{
			Name: "edit_file", Summary: "Edit a file",
			Doc: "Replaces a text in a file of a sandbox by another one. The text must occur exactly once, unless replaceAll is set.",
		}, editFile),
		define(tool{does: reads}, operation.Operation{
			Name: "read_file", Summary: "Read a file",
			Doc: "Reads a file in a sandbox: at most some 40,000 characters, from an offset. PNG, JPEG, GIF and WebP files are returned as images.",
		}, readFile),
		define(tool{does: reads}, operation.Operation{
			Name: "list_files", Summary: "List files", Doc: "Lists a folder in a sandbox; with recursive, the folders in it, too, except those called node_modules.",
		}, listFiles),
	}
}

// guestPath returns the absolute path in a sandbox for one of a call.
func guestPath(name string) (string, error) {
	if !path.IsAbs(name) {
		name = path.Join(string(vfs.Workspace), name)
	}
	clean, err := vfs.ParsePath(path.Clean(name))
	if err != nil {
		return "", service.Refuse(service.Invalid, "path: %w", err)
	}
	return string(clean), nil
}

// file names a file in the sandbox by its absolute path.
func (in InSandbox) file(path string) requestjson.InFile {
	f := requestjson.InFile{InSandbox: in.in()}
	f.Path, f.PathBytes = requestjson.SplitPath(path)
	return f
}

// InFile names a file.
type InFile struct {
	InSandbox
	Path string `json:"path" minLength:"1" maxLength:"4095" doc:"An absolute path, or one relative to /workspace."`
}

func (in InFile) file() (f requestjson.InFile, err error) {
	p, err := guestPath(in.Path)
	return in.InSandbox.file(p), err
}

// readContent returns a part of a file.
func readContent(ctx context.Context, c *operation.Call, f requestjson.InFile, offset, limit int64) ([]byte, *resultjson.FileInfo, error) {
	var content bytes.Buffer
	reading := *c
	reading.Download = &content
	info, err := operation.Perform[*resultjson.FileInfo](ctx, &reading, "readFile", &requestjson.ReadIn{InFile: f, Offset: offset, Limit: limit})
	return content.Bytes(), info, err
}

// maxResource bounds a file that is read as a resource, or edited.
const maxResource = 16 << 20

// readAll returns a whole file.
func readAll(ctx context.Context, c *operation.Call, f requestjson.InFile) ([]byte, error) {
	content, info, err := readContent(ctx, c, f, 0, maxResource)
	if err == nil && info.Size > maxResource {
		return nil, service.Refuse(service.TooLarge, "%s has more than 16 MiB: use read_file with an offset, or run_command", info.Path)
	}
	return content, err
}

// writeContent writes a file, and the folders above it that are missing.
func writeContent(ctx context.Context, c *operation.Call, f requestjson.InFile, content []byte) error {
	writing := *c
	writing.Upload = func(_ context.Context, most int64) (io.Reader, error) {
		return http.MaxBytesReader(nil, io.NopCloser(bytes.NewReader(content)), most), nil
	}
	_, err := operation.Perform[any](ctx, &writing, "writeFile", &requestjson.WriteIn{InFile: f, Parents: true})
	return err
}

type writeIn struct {
	InFile
	Content  string `json:"content" doc:"The new content. It replaces the old one. Missing folders are created."`
	Encoding string `json:"encoding,omitempty" enum:"utf8,base64" doc:"utf8 (the default) or base64, for content that is not text."`
}

// WriteOut describes a file that was written.
type WriteOut struct {
	Path string `json:"path" doc:"The absolute path."`
	Size int    `json:"size" doc:"Bytes of the file now."`
	URI  string `json:"uri" doc:"The file as a resource."`
}

func writeFile(ctx context.Context, c *operation.Call, in *writeIn) (*WriteOut, error) {
	content := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	return in.write(ctx, c, content)
}

func (in InFile) write(ctx context.Context, c *operation.Call, content []byte) (*WriteOut, error) {
	f, err := in.file()
	if err == nil {
		err = writeContent(ctx, c, f, content)
	}
	return &WriteOut{f.Path, len(content), fileURI(in.SandboxID, f.Path)}, err
}

type editIn struct {
	InFile
	OldText    string `json:"oldText" minLength:"1" doc:"The text to replace, exactly as in the file, with enough lines around it to be unique."`
	NewText    string `json:"newText" doc:"The text to put there; empty to delete."`
	ReplaceAll bool   `json:"replaceAll,omitempty" doc:"Replace all occurrences."`
}

type editOut struct {
	WriteOut
	Replacements int `json:"replacements" doc:"How often the text was replaced."`
}

func editFile(ctx context.Context, c *operation.Call, in *editIn) (*editOut, error) {
	f, err := in.file()
	if err != nil {
		return nil, err
	}
	content, err := readAll(ctx, c, f)
	if err != nil {
		return nil, err
	}
	edited, n, err := replace(content, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	written, err := in.write(ctx, c, edited)
	return &editOut{*written, n}, err
}

// replace replaces the text of a call. It checks the size of the result before it makes it.
func replace(content []byte, in *editIn) (edited []byte, n int, err error) {
	n = bytes.Count(content, []byte(in.OldText))
	switch {
	case n == 0:
		return nil, 0, errors.New("it does not contain oldText: read_file shows the exact text, blanks included")
	case n > 1 && !in.ReplaceAll:
		return nil, 0, fmt.Errorf("it contains oldText %d times: include more of the lines around it, or set replaceAll", n)
	case len(content)+n*(len(in.NewText)-len(in.OldText)) > maxResource:
		return nil, 0, errors.New("it would have more than 16 MiB: use run_command")
	}
	return bytes.ReplaceAll(content, []byte(in.OldText), []byte(in.NewText)), n, nil
}

type readIn struct {
	InFile
	Offset int64 `json:"offset,omitempty" minimum:"0" doc:"The byte to begin at; 0 by default."`
}

type readOut struct {
	Path       string `json:"path" doc:"The absolute path."`
	Content    string `json:"content" doc:"At most some 40,000 characters; empty for an image."`
	Encoding   string `json:"encoding" doc:"utf8, base64 if the content is not text, or image if the result has it as an image."`
	Size       int64  `json:"size" doc:"Bytes of the whole file."`
	NextOffset int64  `json:"nextOffset,omitempty" doc:"Where the rest begins. Absent at the end of the file."`
	URI        string `json:"uri" doc:"The whole file as a resource."`

	offset int64
	image  *mcp.ImageContent
}

// maxImage bounds an image in a result, in bytes: models accept at most 5 MB in base64.
const maxImage = 3_700_000

// imageTypes are the types that models accept.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func readFile(ctx context.Context, c *operation.Call, in *readIn) (*readOut, error) {
	f, err := in.file()
	if err != nil {
		return nil, err
	}
	b, info, err := readContent(ctx, c, f, in.Offset, maxText)
	if err != nil {
		return nil, err
	}
	out := &readOut{Path: info.Path, Size: info.Size, URI: fileURI(in.SandboxID, info.Path), offset: in.Offset}
	if in.Offset == 0 && info.Size <= maxImage && imageTypes[http.DetectContentType(b)] {
		if b, err = readAll(ctx, c, f); err != nil {
			return nil, err
		}
		out.Encoding, out.image = "image", &mcp.ImageContent{Data: b, MIMEType: http.DetectContentType(b)}
		return out, nil
	}
	if in.Offset+int64(len(b)) < info.Size {
		b = b[:len(b)-resultjson.Incomplete(b)]
	}
	out.Content, out.Encoding = string(b), "utf8"
	if !utf8.Valid(b) {
		b = b[:min(len(b), maxText/4*3)] // base64 is longer
		out.Content, out.Encoding = base64.StdEncoding.EncodeToString(b), "base64"
	}
	if next := in.Offset + int64(len(b)); next < info.Size {
		out.NextOffset = next
	}
	return out, nil
}

func (r *readOut) content() ([]mcp.Content, bool) {
	if r.image != nil {
		return []mcp.Content{r.image}, false
	}
	content := texts(r.Content)
	if r.NextOffset > 0 {
		note := fmt.Sprintf("[%d of %d bytes; the rest: read_file with offset %d]", r.NextOffset-r.offset, r.Size, r.NextOffset)
		content = append(content, &mcp.TextContent{Text: note}, &mcp.ResourceLink{URI: r.URI, Name: path.Base(r.Path), Title: "The whole file", Size: &r.Size})
	}
	return content, false
}

type listIn struct {
	InSandbox
	Path      string `json:"path,omitempty" maxLength:"4095" doc:"A folder; /workspace by default."`
	Recursive bool   `json:"recursive,omitempty" doc:"List everything below the folder, without following links."`
}

// listOut is the result of list_files.
type listOut struct {
	Path      string  `json:"path" doc:"The absolute path of the folder."`
	Files     []entry `json:"files" doc:"Sorted, each folder before its content."`
	Truncated bool    `json:"truncated" doc:"Whether there are more than 1,000."`
}

// entry is a file in a list.
type entry struct {
	Path string `json:"path" doc:"The path below the listed folder. Invalid UTF-8 becomes U+FFFD."`
	Type string `json:"type" doc:"file, folder, link, fifo, socket or device"`
	Size int64  `json:"size" doc:"Bytes."`
}

func listFiles(ctx context.Context, c *operation.Call, in *listIn) (*listOut, error) {
	f, err := InFile{in.InSandbox, in.Path}.file()
	if err != nil {
		return nil, err
	}
	list, err := operation.Perform[*service.FileList](ctx, c, "listFiles", &requestjson.ListIn{InFile: f, FolderList: requestjson.FolderList{Recursive: in.Recursive, Exclude: "node_modules"}})
	if err != nil {
		return nil, err
	}
	out := &listOut{f.Path, []entry{}, list.Truncated}
	total := 0
	for _, file := range list.Files {
		name := strings.TrimPrefix(strings.TrimPrefix(file.Path, f.Path), "/")
		if total += len(name); total > maxText {
			out.Truncated = true
			break
		}
		out.Files = append(out.Files, entry{name, file.Type, file.Size})
	}
	return out, nil
}

func (r *listOut) content() ([]mcp.Content, bool) {
	var lines strings.Builder
	for _, f := range r.Files {
		if f.Type == "folder" {
			f.Path += "/"
		}
		fmt.Fprintf(&lines, "%9d %s\n", f.Size, f.Path)
	}
	if r.Truncated {
		lines.WriteString("[there are more]\n")
	}
	if lines.Len() == 0 {
		lines.WriteString("(empty)\n")
	}
	return texts(strings.TrimSuffix(lines.String(), "\n")), false
}

// addResources adds the files of sandboxes.
func (e *endpoint) addResources() {
	e.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "sandbox_file", Title: "File of a sandbox", URITemplate: uriScheme + "{id}/{+path}",
		Description: "A file of one of your sandboxes, by its absolute path. Output that is too long for a result is such a file.",
	}, e.readResource)
}

func (e *endpoint) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	id, name, ok := parseURI(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	p, err := guestPath(name)
	if err != nil {
		return nil, err
	}
	b, err := readAll(ctx, e.call(), InSandbox{id}.file(p))
	if failed, ok := errors.AsType[*service.Error](err); ok && failed.Code == service.NotFound || errors.Is(err, fs.ErrNotExist) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: mime.TypeByExtension(path.Ext(name))}
	if c.Text = string(b); !utf8.ValidString(c.Text) {
		c.Text, c.Blob = "", b
	}
	if c.MIMEType == "" {
		c.MIMEType = map[bool]string{true: "text/plain", false: "application/octet-stream"}[c.Blob == nil]
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}
