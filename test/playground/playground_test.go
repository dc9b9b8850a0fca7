package playground

import (
	"context"
	"net/http/httptest"
	"os"
	"testing"

	"gaol/test/harness"
	"gaol/test/tier"
)

// world is the shared state of the tests of the page.
type world struct {
	browser context.Context
	gaol    string
	url     string // of a server for everyone, with the framework's stub packages
	docs    *httptest.Server
	evil    *httptest.Server
}

// packages has stubs in the shape of a framework.
const packages = "../../runtime/snippets/testdata/packages/node_modules"

// TestPlayground tests the page in one browser.
func TestPlayground(t *testing.T) {
	tier.Soak(t)
	w := &world{browser: startBrowser(t), gaol: harness.Gaol(t)}
	w.docs, w.evil = startDocs(t, w), startDocs(t, w)
	w.url = startServer(t, w.gaol, map[string]any{
		"snippets":   map[string]any{"anonymous": map[string]any{"requestsPerMin": 1e6, "requestsPerSec": 1e6}, "adapter": "directive", "nodeModules": absolute(t, packages)},
		"playground": map[string]any{"frameAncestors": []string{w.docs.URL}},
	})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *world)
	}{
		{"Run", testRun}, {"Stream", testStream}, {"ErrorMark", testErrorMark}, {"Share", testShare}, {"ShareFiles", testShareFiles}, {"BadLinks", testBadLinks}, {"TwoFiles", testTwoFiles},
		{"Facts", testFacts}, {"HostileOutput", testHostileOutput}, {"Policy", testPolicy}, {"Flood", testFlood}, {"Keyboard", testKeyboard}, {"Dialogs", testDialogs}, {"Reload", testReload},
		{"Token", testToken}, {"Embed", testEmbed}, {"EmbedElsewhere", testEmbedElsewhere}, {"MessagesToFrame", testMessagesToFrame}, {"MessagesToSite", testMessagesToSite},
		{"Accessibility", testAccessibility}, {"Phone", testPhone},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, w) })
	}
	if dir := os.Getenv("GAOL_TEST_SCREENSHOTS"); dir != "" {
		t.Run("Screenshots", func(t *testing.T) { takeScreenshots(t, w, dir) })
	}
}
