package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/vfs/hostfs"
)

// EditArgs are the arguments of edit_file.
type EditArgs struct {
	SandboxID  string `json:"sandboxId" jsonschema:"The sandbox."`
	Path       string `json:"path" jsonschema:"An absolute path, or one relative to /workspace."`
	OldText    string `json:"oldText" jsonschema:"The text to replace, exactly as in the file, with enough lines around it to be unique."`
	NewText    string `json:"newText" jsonschema:"The text to put there; empty to delete."`
	ReplaceAll bool   `json:"replaceAll,omitempty" jsonschema:"Replace all occurrences."`
}

// EditResult is the result of edit_file.
type EditResult struct {
	Path         string `json:"path" jsonschema:"The absolute path."`
	Replacements int    `json:"replacements" jsonschema:"How often the text was replaced."`
	Size         int    `json:"size" jsonschema:"Bytes of the file now."`
	URI          string `json:"uri" jsonschema:"The file as a resource."`
}

func (e *endpoint) editFile(_ context.Context, _ *mcp.CallToolRequest, a EditArgs) (res *mcp.CallToolResult, out *EditResult, err error) {
	err = e.inSandbox(a.SandboxID, a.Path, func(sb *service.Sandbox, path string) error {
		content, err := readAll(sb, path)
		if errors.Is(err, errLargeFile) {
			return errLargeEdit
		}
		if err != nil {
			return err
		}
		out = &EditResult{Path: path, URI: fileURI(sb.ID, path)}
		if content, out.Replacements, err = replace(content, a); err != nil {
			return err
		}
		out.Size = len(content)
		return sb.FS().WriteFile(path, content, hostfs.WriteOptions{})
	})
	if err != nil {
		return nil, nil, err
	}
	return textResult(fmt.Sprintf("replaced the text %d times in %s, which has %d bytes now", out.Replacements, out.Path, out.Size)), out, nil
}

const (
	errLargeEdit = advice("it has, or would have, more than 16 MiB: use run_command")
	errNoText    = advice("it does not contain oldText: read_file shows the exact text, blanks included")
)

// replace replaces the text of a call. It checks the size of the result before it makes it.
func replace(content []byte, a EditArgs) (edited []byte, n int, err error) {
	n = bytes.Count(content, []byte(a.OldText))
	switch {
	case n == 0:
		return nil, 0, errNoText
	case n > 1 && !a.ReplaceAll:
		return nil, 0, advice(fmt.Sprintf("it contains oldText %d times: include more of the lines around it, or set replaceAll", n))
	case len(content)+n*(len(a.NewText)-len(a.OldText)) > maxResource:
		return nil, 0, errLargeEdit
	}
	return bytes.ReplaceAll(content, []byte(a.OldText), []byte(a.NewText)), n, nil
}

// maxImage bounds an image in a result, in bytes: models accept at most 5 MB in base64.
const maxImage = 3_700_000

// imageTypes are the types that models accept.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// readImage returns a file as an image if its first bytes are those of one, and it is small enough.
func readImage(sb *service.Sandbox, path string) (*mcp.ImageContent, error) {
	info, err := sb.FS().Stat(path)
	if err != nil || info.Size() > maxImage {
		return nil, err
	}
	b, err := readAll(sb, path)
	if err != nil || len(b) > maxImage {
		return nil, err
	}
	kind := http.DetectContentType(b)
	if !imageTypes[kind] {
		return nil, nil
	}
	return &mcp.ImageContent{Data: b, MIMEType: kind}, nil
}
