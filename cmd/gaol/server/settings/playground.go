package settings

import (
	"fmt"

	"gaol/internal/lazyregexp"
)

// Playground are the settings of the page for people.
type Playground struct {
	// Off turns it off.
	Off bool `json:"off,omitzero"`

	// FrameAncestors are the origins of pages that may show it in a frame, such as
	// https://docs.example.com. Default: none.
	FrameAncestors []string `json:"frameAncestors,omitzero"`
}

// frameAncestor is the form of an origin that is safe in a header: characters such as ; would begin
// another directive.
var frameAncestor = lazyregexp.New(`^https?://([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?$`)

func (s *Settings) checkPlayground() error {
	for _, origin := range s.Playground.FrameAncestors {
		if !frameAncestor().MatchString(origin) {
			return fmt.Errorf("playground: frameAncestors: %q: want http:// or https:// and a host in lower case", origin)
		}
	}
	return nil
}
