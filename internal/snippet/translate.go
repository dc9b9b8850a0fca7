package snippet

import (
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"

	"github.com/evanw/esbuild/pkg/api"
)

// loaders are the languages that [Translate] reads, by the ending of a file's name.
var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX, ".jsx": api.LoaderJSX,
}

// Translates reports whether [Translate] reads files of such a name.
func Translates(name string) bool { return loaders[path.Ext(name)] != 0 }

// Translate turns a file of TypeScript or JSX, whose name says which, into JavaScript with
// an inline source map. With commonJS, import and export declarations become calls of require
// and properties of exports, as TypeScript's compiler has them.
func Translate(name, code string, commonJS bool) (string, *SyntaxError) {
	d, c := newDraft(code), compiler{file: url.PathEscape(name)}
	loader := loaders[path.Ext(name)]
	if err := d.bounded(loader != api.LoaderTS); err != nil {
		err.Limit = true
		return "", err
	}
	options := api.TransformOptions{Loader: loader, Sourcemap: api.SourceMapInline}
	if commonJS {
		options.Format = api.FormatCommonJS
	}
	result := c.transform(d, options)
	if len(result.Errors) > 0 {
		return "", c.syntaxError(d, result)
	}
	return string(result.Code), nil
}

// bounded refuses what esbuild could take too long, or too much stack, for.
func (d draft) bounded(jsx bool) *SyntaxError {
	if len(d.text) > maxTyped {
		return d.errorAt(0, fmt.Sprintf("TypeScript or JSX may have %d bytes, this has %d", maxTyped, len(d.text)))
	}
	if n := validLength(d.text); n < len(d.text) {
		return d.errorAt(n, "the code is not UTF-8")
	}
	s := scan(d.text, jsx)
	switch {
	case s.refusal != "":
		return d.errorAt(s.pos, s.refusal)
	case s.fenced:
		return d.errorAt(s.pos, markdownInCode)
	case s.cost.ns > maxCost:
		return d.errorAt(0, tooComplex)
	}
	return nil
}

// Program is JavaScript that throws the error from its place in the file of that name, to
// which a source map leads.
func (e *SyntaxError) Program(name string) string {
	message, _ := json.Marshal(e.Message)
	sources, _ := json.Marshal(map[string]any{
		"version": 3, "names": []string{}, "sources": []string{url.PathEscape(name)}, "sourcesContent": []string{e.snippet},
		"mappings": "AA" + encodeNumber(e.Line-1) + encodeNumber(e.Column-1),
	})
	return fmt.Sprintf("throw new SyntaxError(%s)\n//# sourceMappingURL=data:application/json;base64,%s\n", message, b64.StdEncoding.EncodeToString(sources))
}
