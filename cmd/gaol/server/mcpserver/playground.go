package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/runtime/snippets"
)

const (
	linkTool = "playground_link"

	linkAbout = `Returns a link that opens a snippet in the server's playground. The link itself has the source: nothing is stored, and opening it runs nothing.`

	maxLinked = 8000 // bytes of UTF-8 in a link
)

// LinkResult is the result of playground_link.
type LinkResult struct {
	PlaygroundURL string `json:"playgroundUrl"`
}

// addPlaygroundLink adds the tool playground_link.
func (e *endpoint) addPlaygroundLink() {
	link := describe(linkTool, "Link to the playground", linkAbout, reads, true, false)
	link.InputSchema, link.OutputSchema = snippetSchema[SnippetFiles](), schemaOf[LinkResult]()
	e.mcp.AddTool(link, e.snippetTool(e.playgroundLink))
	e.mcp.AddReceivingMiddleware(e.hideLink)
}

// hasPlayground reports whether the settings have the page. They can change at any time.
func (e *endpoint) hasPlayground() bool { return !e.service.Settings().Playground.Off }

// hideLink makes playground_link an unknown tool while there is no playground.
func (e *endpoint) hideLink(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if e.hasPlayground() {
			return next(ctx, method, r)
		}
		if call, ok := r.(*mcp.CallToolRequest); ok && call.Params.Name == linkTool {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", linkTool)}
		}
		res, err := next(ctx, method, r)
		if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
			list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == linkTool })
		}
		return res, err
	}
}

func (e *endpoint) playgroundLink(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in SnippetFiles
	if err := decodeSnippet(r, &in, &in); err != nil {
		return nil, err
	}
	url, err := e.link(in)
	if err != nil {
		return nil, err
	}
	res := textResult(url)
	res.StructuredContent = &LinkResult{url}
	return res, nil
}

// link returns a link to a snippet.
func (e *endpoint) link(in SnippetFiles) (string, error) {
	if !e.hasPlayground() {
		return "", errors.New("the server has no playground")
	}
	base := e.service.Settings().PublicURL
	if base == "" {
		return "", errors.New("the server has no public URL: its operator sets one with --public-url")
	}
	size, linked := 0, snippets.Input{Files: in.list()}
	if in.Source != nil {
		size, linked.Source = len(*in.Source), *in.Source
	}
	for _, f := range in.Files {
		size += len(f.Source)
	}
	if size > maxLinked {
		return "", &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("the snippet has %d bytes, the limit for a link is %d", size, maxLinked)}
	}
	if err := linked.Validate(); err != nil {
		return "", err
	}
	fragment, err := snippets.EncodeLink(linked)
	if err != nil {
		return "", err
	}
	return base + "/#" + fragment, nil
}
