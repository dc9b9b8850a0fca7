package network

import (
	"encoding/json"
	"testing"

	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// snippetFetching fetches URLs, and exports a text for each.
const snippetFetching = `
	const got = {};
	for (const url of URLS) {
		try {
			got[url] = await (await fetch(url, { headers: { connection: 'close' }, signal: AbortSignal.timeout(5000) })).text();
		} catch (err) {
			got[url] = String(err.cause?.code ?? err.cause?.errors?.[0]?.code ?? err.message);
		}
	}
	export default got;`

func fetchInSnippet(t *testing.T, r *snippets.Runner, urls ...string) (map[string]string, *snippets.Output) {
	t.Helper()
	list, err := json.Marshal(urls)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Run(t.Context(), snippets.Input{Source: "const URLS = " + string(list) + ";" + snippetFetching, Timeout: snippets.MaxTimeout})
	if err != nil {
		t.Fatal(err)
	}
	var facts struct{ Default map[string]string }
	if err := json.Unmarshal(out.Facts, &facts); err != nil || len(facts.Default) != len(urls) {
		t.Fatalf("facts %s, errors %q, %v", out.Facts, out.Errors, err)
	}
	return facts.Default, out
}

func newSnippets(t *testing.T, network string) *snippets.Runner {
	t.Helper()
	r, err := snippets.New(snippets.Options{Network: network, MaxConcurrent: 1, Sandbox: harness.Options(runtime.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A snippet reaches the public internet if its runner allows it, and no private address: neither
// by name, by redirects, nor by a name that changes its address.
func TestSnippetsPublic(t *testing.T) {
	in := serveInternet(t)
	r := newSnippets(t, "public")
	got, _ := fetchInSnippet(t, r, "http://api.example.com/", "http://93.184.215.14/", "http://other.test/?to=http://api.example.com/")
	for url, text := range got {
		if !isServed(text) {
			t.Errorf("%s: %s", url, text)
		}
	}
	in.forget()
	denied := []string{
		"http://10.1.2.3/", "http://private.test/", "http://169.254.169.254/latest/meta-data/", "http://metadata.test/", "http://nat64.test/", "http://mapped.test/",
		"http://127.0.0.1/", "http://loopback.test/", "http://other.test/?to=http://169.254.169.254/", "http://other.test/?to=http://private.test/", "http://other.test/?to=http://127.0.0.1/",
	}
	got, out := fetchInSnippet(t, r, denied...)
	for url, text := range got {
		if isServed(text) {
			t.Errorf("%s: %s", url, text)
		}
	}
	if len(out.Denials) == 0 || out.Usage.Network.Denied == 0 {
		t.Errorf("denials %+v, usage %+v", out.Denials, out.Usage)
	}
	// The first answer makes the name private, before it is used again.
	got, _ = fetchInSnippet(t, r, "http://www.example.com/?rebind=www.example.com&address=10.1.2.3", "http://www.example.com/secret")
	if isServed(got["http://www.example.com/secret"]) {
		t.Errorf("after rebinding: %v", got)
	}
	in.checkReached(t, publicV4, publicV6, otherV4)
}

// Without Network a snippet reaches nothing.
func TestSnippetsWithoutNetwork(t *testing.T) {
	in := serveInternet(t)
	got, _ := fetchInSnippet(t, newSnippets(t, ""), "http://api.example.com/", "http://93.184.215.14/", "http://10.1.2.3/", "http://127.0.0.1/")
	for url, text := range got {
		if isServed(text) {
			t.Errorf("%s: %s", url, text)
		}
	}
	in.checkReached(t)
}
