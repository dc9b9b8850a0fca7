package mcpserver

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// overflow writes text that is too long for a result to files of the sandbox, and links to them.
type overflow struct {
	ctx     context.Context // of the call
	call    *operation.Call
	sandbox string // empty: one is created for the first file

	extra
}

// fit returns as many characters of a text as a result may have. If that is not all, the whole text
// becomes a file.
func (o *overflow) fit(name, kind, text string, characters int) string {
	shown, more := cut(text, characters)
	if !more {
		return text
	}
	path := "/tmp/gaol-" + strings.ToLower(rand.Text()[:10]) + "-" + name
	if err := o.keep(path, text); err != nil {
		o.note("[%s: only the first %d characters are shown; the rest is lost: %v]", name, characters, err)
		return shown
	}
	size := int64(len(text))
	o.links = append(o.links, &mcp.ResourceLink{URI: fileURI(o.sandbox, path), Name: name, Title: "All of " + name, MIMEType: kind, Size: &size})
	o.note("[%s: only the first %d characters are shown. All %d bytes are in the file %s of sandbox %s: use read_file with an offset]", name, characters, size, path, o.sandbox)
	return shown
}

// keep writes a file to the sandbox, or to a new one.
func (o *overflow) keep(path, text string) error {
	if o.sandbox == "" {
		made, err := operation.Perform[*resultjson.SandboxInfo](o.ctx, o.call, "createSandbox", &requestjson.SandboxRequest{})
		if err != nil {
			return err
		}
		o.sandbox = made.ID
	}
	return writeContent(o.ctx, o.call, inFile(o.sandbox, path), []byte(text))
}

// shares divides the characters of a result between two texts: the second one has at least a quarter
// if it needs that.
func shares(first, second string) (characters, rest int) {
	rest = max(maxText/4, maxText-len(first))
	return maxText - min(len(second), rest), rest
}

// uriScheme begins the URIs of files in sandboxes, which end with the id and the path.
const uriScheme = "gaol://sandbox/"

// fileURI returns the URI of a file in a sandbox.
func fileURI(id, path string) string {
	return uriScheme + id + (&url.URL{Path: path}).EscapedPath()
}

// parseURI returns the sandbox and the path of a URI.
func parseURI(uri string) (id, path string, ok bool) {
	rest, ok := strings.CutPrefix(uri, uriScheme)
	if !ok {
		return "", "", false
	}
	id, escaped, ok := strings.Cut(rest, "/")
	path, err := url.PathUnescape("/" + escaped)
	return id, path, ok && err == nil
}
