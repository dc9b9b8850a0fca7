package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/snippets"
)

const (
	linkTool  = "playground_link" // tenants whose first request finds the playground off lack it
	linkAbout = `Returns a link that opens a snippet in the server's playground. The link itself contains the source: nothing is stored, and opening it runs nothing.`

	maxLinked = 8000 // bytes of UTF-8 in a link
)

// linkOut is the result of playground_link.
type linkOut struct {
	PlaygroundURL string `json:"playgroundUrl" text:"%s"`
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
