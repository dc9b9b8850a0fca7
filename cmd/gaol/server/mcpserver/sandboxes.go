package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/sandboxtools"
	"gaol/vfs"
)

const createAbout = `Creates a sandbox whose files are kept between calls, until it is closed, or unused for some time. Permissions restrict its code, for example which hosts it may reach.`

// sandboxTools are the tools that create and close sandboxes.
func sandboxTools() []*tool {
	return []*tool{
		newTool(tool{does: adds, adapt: adaptIsolation}, operation.Operation{
			Name: "create_sandbox", Summary: "Create a sandbox", Doc: createAbout,
			Fields: []string{"image", "files", "env", "permissions", "limits", "idleTimeoutMs", "isolation"},
		}, createSandbox),
		newTool(tool{}, operation.Operation{
			Name: "close_sandbox", Summary: "Close a sandbox", Doc: "Deletes a sandbox with its files, and ends all that runs in it.",
		}, closeSandbox),
	}
}

// InSandbox names a sandbox.
type InSandbox struct {
	SandboxID string `json:"sandboxId" maxLength:"64" doc:"The sandbox."`
}

func (in InSandbox) in() requestjson.InSandbox { return requestjson.InSandbox{Sandbox: in.SandboxID} }

// adaptIsolation lists the isolations that callers may choose, the default one first. There is no argument if they
// cannot choose.
func adaptIsolation(e *endpoint, t *mcp.Tool, in *huma.Schema) {
	names := e.service.Settings().IsolationNames()
	if len(names) == 1 {
		delete(in.Properties, "isolation")
		t.Description += isolationAbout(names)
		return
	}
	for _, name := range names {
		in.Properties["isolation"].Enum = append(in.Properties["isolation"].Enum, name)
	}
}

// isolationAbout names the isolation of the sandboxes of a tool without an argument for it.
func isolationAbout(names []string) string { return " Its isolation is " + names[0] + "." }

// sandboxOut is the result of create_sandbox.
type sandboxOut struct {
	SandboxID string   `json:"sandboxId" text:"[sandboxId %s]" doc:"The id for the other tools."`
	Isolation string   `json:"isolation" text:"[isolation %s]" doc:"What confines the sandbox."`
	Expires   string   `json:"expires" text:"[expires %s]" doc:"When the sandbox is deleted unless it is used before, as RFC 3339."`
	Missing   []string `json:"missing,omitempty" text:"[not enforced: %s]" doc:"Rules that the server's kernel does not enforce."`
}

func createSandbox(ctx context.Context, c *operation.Call, in *requestjson.SandboxRequest) (*sandboxOut, error) {
	files := map[string]string{}
	for name, text := range in.Files {
		files[absolute(name)] = text
	}
	in.Files = files
	info, err := operation.Perform[*resultjson.SandboxInfo](ctx, c, "createSandbox", in)
	if err != nil {
		return nil, err
	}
	return &sandboxOut{info.ID, info.Isolation, info.Expires.UTC().Format(time.RFC3339), info.Missing}, nil
}

// closeOut is the result of close_sandbox.
type closeOut struct {
	SandboxID string `json:"sandboxId"`
	Closed    bool   `json:"closed" text:"[closed]"`
}

func closeSandbox(ctx context.Context, c *operation.Call, in *InSandbox) (*closeOut, error) {
	_, err := operation.Perform[any](ctx, c, "deleteSandbox", new(in.in()))
	return &closeOut{in.SandboxID, true}, err
}

// sandboxEffects are the effects of the tools of package sandboxtools, unless they may destroy something.
var sandboxEffects = map[string]effect{
	"sandbox_init": adds, "sandbox_create_directory": adds,
	"sandbox_read_file": reads, "sandbox_list_directory": reads, "sandbox_exists": reads, "sandbox_file_info": reads,
}

// addSandboxTools adds the tools of package sandboxtools, with their own names and schemas.
func (e *endpoint) addSandboxTools() {
	session := e.service.NewSession(e.tenant) // which ends with the service
	for _, t := range sandboxtools.Tools() {
		title := "Sandbox" + strings.ReplaceAll(strings.TrimPrefix(t.Name, "sandbox"), "_", " ")
		described := describe(t.Name, title, t.Description, sandboxEffects[t.Name], t.Name == "sandbox_write_file", t.Name == "sandbox_command")
		described.InputSchema, described.OutputSchema = t.InputSchema, t.OutputSchema
		if t.Name == "sandbox_init" {
			described.Description += isolationAbout(e.service.Settings().IsolationNames())
		}
		e.addTool(described, func(ctx context.Context, c *operation.Call, args json.RawMessage) (any, error) {
			out, err := session.CallTool(ctx, t.Name, args)
			return newToolResult(out), toolError(ctx, c, err)
		})
	}
}

// toolResult is the result of a tool of package sandboxtools.
type toolResult struct {
	json.RawMessage
	Text string `text:"%s"`
	extra
}

// newToolResult returns a result. A command has failed if it has not ended normally with the exit code 0.
func newToolResult(out json.RawMessage) *toolResult {
	var c sandboxtools.CommandResult
	r := &toolResult{RawMessage: out}
	r.failed = json.Unmarshal(out, &c) == nil && (c.ExitCode != 0 || c.Cause != "")
	text, more := cut(string(out), maxText)
	if r.Text = text; more {
		r.note("[cut: structuredContent has all of it]")
	}
	return r
}

// toolError returns an error of a tool for the model.
func toolError(ctx context.Context, c *operation.Call, err error) error {
	t, ok := errors.AsType[*sandboxtools.Error](err)
	switch {
	case !ok:
		return explain(ctx, c, nil, err)
	case t.Code == sandboxtools.NotFound && t.Place == "containerId":
		return fmt.Errorf("%w. Create a sandbox with sandbox_init (%s)", err, t.Code)
	}
	return fmt.Errorf("%w (%s)", err, t.Code)
}

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
func (in InSandbox) file(name string) requestjson.InFile { return inFile(in.SandboxID, absolute(name)) }

// absolute returns a path of a call as an absolute, clean one. The sandbox checks it.
func absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(string(vfs.Workspace), name)
}

// readContent returns a part of a file.
func readContent(ctx context.Context, c *operation.Call, f requestjson.InFile, offset, limit int64) ([]byte, *resultjson.FileInfo, error) {
	var content bytes.Buffer
	reading := *c
	reading.Download = func(context.Context) io.Writer { return &content }
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
	f := in.file(in.Path)
	err := writeContent(ctx, c, f, content)
	return &WriteOut{f.Path, len(content), fileURI(in.SandboxID, f.Path)}, err
}

type editOut struct {
	WriteOut
	Replacements int `json:"replacements" doc:"How often the text was replaced."`
}

func editFile(ctx context.Context, c *operation.Call, in *fileIn) (*editOut, error) {
	f := in.file(in.Path)
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
	f := in.file(in.Path)
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
	f := in.file(in.Path)
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

func (e *endpoint) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	id, name, ok := parseURI(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	b, err := readAll(ctx, e.call(), InSandbox{id}.file(name))
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
