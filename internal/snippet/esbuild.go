package snippet

import (
	"cmp"
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// The file name decides whether esbuild reads the code as a module.
const (
	sourceName = "snippet."
	moduleName = sourceName + "mts"
	scriptName = sourceName + "ts"
)

// check reports the first error that esbuild finds in parsed JavaScript. With a break at the end, which is an error, it checks all of
// the code but prints none, which would take half of its time.
func (c *compiler) check(d draft) *SyntaxError {
	ended := d
	ended.text += "\n;break"
	found, _ := c.transform(ended, api.TransformOptions{Loader: api.LoaderJS})
	if len(found.Errors) == 1 && ended.offset(found.Errors[0]) == len(ended.text)-len("break") {
		return nil
	}
	_, err := c.transform(d, api.TransformOptions{Loader: api.LoaderJS})
	return err
}

// translate translates TypeScript or JSX to JavaScript.
func (c *compiler) translate(d draft, loader api.Loader, keep imports) (draft, *SyntaxError) {
	options := api.TransformOptions{Loader: loader, TsconfigRaw: keep.config(LegacyDecorators(d.text)), SourcesContent: api.SourcesContentExclude}
	if !c.unmapped {
		options.Sourcemap = api.SourceMapExternal
	}
	result, err := c.transform(d, options)
	if err != nil {
		return draft{}, err
	}
	return d.with(string(result.Code), Stage{From: []byte(d.text), To: result.Code, Map: result.Map}), nil
}

// transform runs esbuild. The error is the first of the result.
func (c *compiler) transform(d draft, options api.TransformOptions) (api.TransformResult, *SyntaxError) {
	options.Sourcefile = cmp.Or(c.file, scriptName)
	if c.module {
		options.Sourcefile = moduleName
	}
	options.Target = api.ESNext
	options.Supported = map[string]bool{"decorators": false} // V8 does not support them yet
	options.Charset = api.CharsetUTF8
	options.JSX = api.JSXTransform
	options.TsconfigRaw = cmp.Or(options.TsconfigRaw, keepsImports.config(LegacyDecorators(d.text)))
	options.TreeShaking = api.TreeShakingFalse
	options.LogLevel = api.LogLevelSilent
	result := api.Transform(d.text, options)
	if UsesMetadata(d.text, string(result.Code)) {
		result.Errors = append(result.Errors, api.Message{Text: NoMetadata})
	}
	if len(result.Errors) == 0 {
		return result, nil
	}
	text := result.Errors[0].Text
	if strings.HasPrefix(text, "Parameter decorators only work") { // the only error whose reason esbuild gives in notes
		text = "decorators of parameters need experimentalDecorators in tsconfig.json, or a comment with " + legacyPragma
	}
	return result, d.errorAt(d.offset(result.Errors[0]), text)
}

// offset returns the offset of a message, whose columns count bytes, from 0.
func (d draft) offset(m api.Message) int {
	offset := 0
	if at := m.Location; at != nil {
		offset = max(0, offsetOf(d.text, at.Line, 1)) + at.Column
	}
	return min(offset, len(d.text))
}

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
