package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/snippets"
)

const (
	linkTool = "playground_link"

	linkAbout = `Returns a link that opens a snippet in the server's playground. The link itself contains the source: nothing is stored, and opening it runs nothing.`

	maxLinked = 8000 // bytes of UTF-8 in a link
)

// linkOut is the result of playground_link.
type linkOut struct {
	PlaygroundURL string `json:"playgroundUrl"`
}

func (r *linkOut) content() ([]mcp.Content, bool) { return texts(r.PlaygroundURL), false }

// hideLink makes playground_link an unknown tool while there is no playground: the settings can change at any time.
func (e *endpoint) hideLink(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if !e.service.Settings().Playground.Off {
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

func linkSnippet(_ context.Context, c *operation.Call, in *SnippetFiles) (*linkOut, error) {
	checked, err := in.input()
	if err != nil {
		return nil, err
	}
	url, err := link(c.Service.Settings(), checked)
	return &linkOut{url}, err
}

// link returns a link to a snippet.
func link(set *settings.Settings, in snippets.Input) (string, error) {
	switch {
	case set.Playground.Off:
		return "", errors.New("the server serves no playground")
	case set.PublicURL == "":
		return "", errors.New("the server lacks a public URL: its operator sets one with --public-url")
	}
	size := len(in.Source)
	for _, f := range in.Files {
		size += len(f.Source)
	}
	if size > maxLinked {
		return "", &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("the snippet has %d bytes, the limit for a link is %d", size, maxLinked)}
	}
	fragment, err := snippets.EncodeLink(in)
	return set.PublicURL + "/#" + fragment, err
}
