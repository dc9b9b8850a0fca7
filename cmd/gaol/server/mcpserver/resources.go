package mcpserver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"path"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
)

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
