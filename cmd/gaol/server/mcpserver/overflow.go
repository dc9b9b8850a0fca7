package mcpserver

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/service"
	"gaol/vfs/hostfs"
)

// overflow writes text that is too long for a result to files of the sandbox, and links to them.
type overflow struct {
	sb    *service.Sandbox
	links []mcp.Content
	notes []string
}

// fit returns as many characters of a text as a result may have. If that is not all, the whole text
// becomes a file.
func (o *overflow) fit(name, kind, text string, characters int) string {
	shown, more := cut(text, characters)
	if !more {
		return text
	}
	path := "/tmp/gaol-" + strings.ToLower(rand.Text()[:10]) + "-" + name
	if err := o.sb.FS().WriteFile(path, []byte(text), hostfs.WriteOptions{Parents: true}); err != nil {
		o.notes = append(o.notes, fmt.Sprintf("[%s: only the first %d characters are shown; the rest is lost: the sandbox has no space for it in /tmp]", name, characters))
		return shown
	}
	size := int64(len(text))
	o.links = append(o.links, &mcp.ResourceLink{URI: fileURI(o.sb.ID, path), Name: name, Title: "All of " + name, MIMEType: kind, Size: &size})
	o.notes = append(o.notes, fmt.Sprintf("[%s: only the first %d characters are shown. All %d bytes are in the file %s of sandbox %s: use read_file with an offset]", name, characters, size, path, o.sb.ID))
	return shown
}

// kept reports whether files remain in the sandbox.
func (o *overflow) kept() bool { return len(o.links) > 0 }

// content is the content of a result: its text, and the links.
func (o *overflow) content(texts ...string) []mcp.Content {
	text := paragraphs(append(texts, o.notes...)...)
	if text == "" {
		text = "(no output)"
	}
	return append([]mcp.Content{&mcp.TextContent{Text: text}}, o.links...)
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
