package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// The preset public opens the guarded way to the internet, if the server allows it. The guard denies
// private addresses.
func TestPublicNetwork(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Snippets.Network = "public" }})
	for _, c := range harness.Some([]struct{ preset, target, source string }{
		{"public", "10.1.2.3", "egress"}, {"default", "10.1.2.3", "seccomp"}, {"strict", "10.1.2.3", "seccomp"}, {"public", "169.254.169.254", "egress"},
	}) {
		es := follow(t, s, snippetUser, path, object{"permissions": c.preset, "timeoutMs": 10_000, "source": fmt.Sprintf(
			"export const error = await fetch('http://%s/').then(() => 'none', (e) => e.cause.code)", c.target)})
		e := es.next()
		var result struct {
			Facts   struct{ Error string }
			Denials []struct{ Scope, Source string }
		}
		if err := json.Unmarshal([]byte(e.data), &result); err != nil || e.name != "result" || result.Facts.Error != "EACCES" ||
			len(result.Denials) != 1 || result.Denials[0].Scope != "network" || result.Denials[0].Source != c.source {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}
