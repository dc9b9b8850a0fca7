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

// fileIn is the union of the arguments of the file tools.
type fileIn struct {
	InSandbox
	Path       string `json:"path" minLength:"1" maxLength:"4095" doc:"An absolute path, or one relative to /workspace."`
	Content    string `json:"content" doc:"The new content. It replaces the old one. Missing folders are created."`
	Encoding   string `json:"encoding,omitempty" enum:"utf8,base64" doc:"utf8 (the default) or base64, for content that is not text."`
	OldText    string `json:"oldText" minLength:"1" doc:"The text to replace, exactly as in the file, with enough lines around it to be unique."`
	NewText    string `json:"newText" doc:"The text to put there; empty to delete."`
	ReplaceAll bool   `json:"replaceAll,omitempty" doc:"Replace all occurrences."`
	Offset     int64  `json:"offset,omitempty" minimum:"0" doc:"The byte to begin at; 0 by default."`
}

// fileTools are the tools for files.
func fileTools() []*tool {
	return []*tool{
		newTool(tool{repeated: true}, operation.Operation{
			Name: "write_file", Summary: "Write a file", Fields: []string{"sandboxId", "path", "content", "encoding"},
			Doc: "Writes a file in a sandbox. An existing one is replaced.",
		}, writeFile),
		newTool(tool{}, operation.Operation{
			Name: "edit_file", Summary: "Edit a file", Fields: []string{"sandboxId", "path", "oldText", "newText", "replaceAll"},
			Doc: "Replaces a text in a file of a sandbox by another one. The text must occur exactly once, unless replaceAll is set.",
		}, editFile),
		newTool(tool{does: reads}, operation.Operation{
			Name: "read_file", Summary: "Read a file", Fields: []string{"sandboxId", "path", "offset"},
			Doc: "Reads a file in a sandbox: at most some 40,000 characters, from an offset. PNG, JPEG, GIF and WebP files are returned as images.",
		}, readFile),
		newTool(tool{does: reads}, operation.Operation{
			Name: "list_files", Summary: "List files",
			Doc: "Lists a folder in a sandbox; with recursive, the folders in it, too, except those called node_modules.",
		}, listFiles),
	}
}

// inFile names a file by its absolute path in a sandbox.
func inFile(sandbox, path string) requestjson.InFile {
	f := requestjson.InFile{InSandbox: requestjson.InSandbox{Sandbox: sandbox}}
	f.Path, f.PathBytes = requestjson.SplitPath(path)
	return f
}

// file names a file by a path of a call.
func (in InSandbox) file(name string) (f requestjson.InFile, err error) {
	if !path.IsAbs(name) {
		name = path.Join(string(vfs.Workspace), name)
	}
	clean, err := vfs.ParsePath(path.Clean(name))
	if err != nil {
		return f, service.Refuse(service.Invalid, "path: %w", err)
	}
	return inFile(in.SandboxID, string(clean)), nil
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

// WriteOut describes a file that was written.
type WriteOut struct {
	Path string `json:"path" text:"%s" doc:"The absolute path."`
	Size int    `json:"size" text:"[%d bytes]" doc:"Bytes of the file now."`
	URI  string `json:"uri" doc:"The file as a resource."`
}

func writeFile(ctx context.Context, c *operation.Call, in *fileIn) (*WriteOut, error) {
	content := []byte(in.Content)
	if in.Encoding == "base64" {
		var err error
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	f, err := in.file(in.Path)
	if err == nil {
		err = writeContent(ctx, c, f, content)
	}
	return &WriteOut{f.Path, len(content), fileURI(in.SandboxID, f.Path)}, err
}

type editOut struct {
	WriteOut
	Replacements int `json:"replacements" doc:"How often the text was replaced."`
}

func editFile(ctx context.Context, c *operation.Call, in *fileIn) (*editOut, error) {
	f, err := in.file(in.Path)
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
	err = writeContent(ctx, c, f, edited)
	return &editOut{WriteOut{f.Path, len(edited), fileURI(in.SandboxID, f.Path)}, n}, err
}

// replace replaces the text of a call. It checks the size of the result before it makes it.
func replace(content []byte, in *fileIn) (edited []byte, n int, err error) {
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

type readOut struct {
	Path       string `json:"path" doc:"The absolute path."`
	Content    string `json:"content" text:"%s" doc:"At most some 40,000 characters; empty for an image."`
	Encoding   string `json:"encoding" doc:"utf8, base64 if the content is not text, or image if the result has it as an image."`
	Size       int64  `json:"size" doc:"Bytes of the whole file."`
	NextOffset int64  `json:"nextOffset,omitempty" doc:"Where the rest begins. Absent at the end of the file."`
	URI        string `json:"uri" doc:"The whole file as a resource."`

	extra
}

// maxImage bounds an image in a result, in bytes: models accept at most 5 MB in base64.
const maxImage = 3_700_000

// imageTypes are the types that models accept.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func readFile(ctx context.Context, c *operation.Call, in *fileIn) (*readOut, error) {
	f, err := in.file(in.Path)
	if err != nil {
		return nil, err
	}
	b, info, err := readContent(ctx, c, f, in.Offset, maxText)
	if err != nil {
		return nil, err
	}
	out := &readOut{Path: info.Path, Encoding: "utf8", Size: info.Size, URI: fileURI(in.SandboxID, info.Path)}
	if kind := http.DetectContentType(b); in.Offset == 0 && info.Size <= maxImage && imageTypes[kind] {
		b, err = readAll(ctx, c, f)
		out.Encoding, out.links = "image", []mcp.Content{&mcp.ImageContent{Data: b, MIMEType: kind}}
		return out, err
	}
	if in.Offset+int64(len(b)) < info.Size {
		b = b[:len(b)-resultjson.Incomplete(b)]
	}
	out.Content = string(b)
	if !utf8.Valid(b) {
		b = b[:min(len(b), maxText/4*3)] // base64 is longer
		out.Content, out.Encoding = base64.StdEncoding.EncodeToString(b), "base64"
	}
	if next := in.Offset + int64(len(b)); next < info.Size {
		out.NextOffset = next
		out.note("[%d of %d bytes; the rest: read_file with offset %d]", len(b), info.Size, next)
		out.links = []mcp.Content{&mcp.ResourceLink{URI: out.URI, Name: path.Base(out.Path), Title: "The whole file", Size: &out.Size}}
	}
	return out, nil
}

type listIn struct {
	InSandbox
	Path      string `json:"path,omitempty" maxLength:"4095" doc:"A folder; /workspace by default."`
	Recursive bool   `json:"recursive,omitempty" doc:"List everything below the folder, without following links."`
}

// listOut is the result of list_files.
type listOut struct {
	Path      string  `json:"path" text:"%s:" doc:"The absolute path of the folder."`
	Files     []entry `json:"files" text:"%s" doc:"Sorted, each folder before its content."`
	Truncated bool    `json:"truncated" text:"[there are more]" doc:"Whether there are more than 1,000."`
}

// entry is a file in a list.
type entry struct {
	Path string `json:"path" doc:"The path below the listed folder. Invalid UTF-8 becomes U+FFFD."`
	Type string `json:"type" doc:"file, folder, link, fifo, socket or device"`
	Size int64  `json:"size" doc:"Bytes."`
}

// String returns a line of a list.
func (e entry) String() string {
	if e.Type == "folder" {
		e.Path += "/"
	}
	return fmt.Sprintf("%9d %s", e.Size, e.Path)
}

func listFiles(ctx context.Context, c *operation.Call, in *listIn) (*listOut, error) {
	f, err := in.file(in.Path)
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
	f, err := InSandbox{id}.file(name)
	if err != nil {
		return nil, err
	}
	b, err := readAll(ctx, e.call(), f)
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
