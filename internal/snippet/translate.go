package snippet

import (
	"cmp"
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"

	"github.com/evanw/esbuild/pkg/api"
)

// Loaders are the languages of files of code by extension.
var Loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX, ".jsx": api.LoaderJSX,
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS,
}

// loaderOf returns the language of an extension, which is JavaScript for other files.
func loaderOf(ext string) api.Loader { return cmp.Or(Loaders[ext], api.LoaderJS) }

// Translates reports whether [Translate] accepts files of this name.
func Translates(name string) bool { return loaderOf(path.Ext(name)) != api.LoaderJS }

// Translate translates a file of TypeScript or JSX, selected by the extension of its name, to
// JavaScript with an inline source map. If commonJS is set, import and export declarations become
// calls of require and properties of exports, as in TypeScript's compiler.
func Translate(name, code string, commonJS bool) (string, *SyntaxError) {
	d, c := newDraft(code), compiler{file: url.PathEscape(name)}
	loader := loaderOf(path.Ext(name))
	if err := c.checkFile(d, loader); err != nil {
		return "", err
	}
	options := api.TransformOptions{Loader: loader, Sourcemap: api.SourceMapInline, TsconfigRaw: Config(d.text)}
	if commonJS {
		options.Format, options.Platform = api.FormatCommonJS, api.PlatformNode // which makes ES modules see the exports
	}
	result, err := c.transform(d, options)
	return string(result.Code), err
}

// Program returns JavaScript that throws the error. A source map maps it to its position in
// the file of that name.
func (e *SyntaxError) Program(name string) string {
	sources, _ := json.Marshal(map[string]any{
		"version": 3, "names": []string{}, "sources": []string{url.PathEscape(name)}, "sourcesContent": []string{e.snippet},
		"mappings": "AA" + EncodeNumber(e.Line-1) + EncodeNumber(e.Column-1),
	})
	return fmt.Sprintf("throw new SyntaxError(%s)\n//# sourceMappingURL=data:application/json;base64,%s\n", Quote(e.Message), b64.StdEncoding.EncodeToString(sources))
}
