package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/cmd/gaol/playground"
)

// bundler makes the files of the page.
type bundler struct {
	page      string // folder with index.html, package-lock.json and src, absolute
	downloads string
}

// bundle returns the files that [playground.Files] lists.
func (b *bundler) bundle(ctx context.Context) (files map[string][]byte, err error) {
	list, err := readLock(filepath.Join(b.page, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	packages, err := os.MkdirTemp("", "gaol-page-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(packages)) }()
	if err := install(ctx, list, b.downloads, packages); err != nil {
		return nil, err
	}
	index, err := os.ReadFile(filepath.Join(b.page, playground.Index))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(index), playground.Nonce) {
		return nil, fmt.Errorf("%s has no %s", playground.Index, playground.Nonce)
	}
	files = map[string][]byte{playground.Index: index}
	var all licenses
	for _, r := range builds {
		if err := b.run(r, packages, files, &all); err != nil {
			return nil, err
		}
	}
	files[playground.Licenses], err = all.text(packages)
	return files, err
}

// build is a run of esbuild.
type build struct {
	format api.Format
	inputs []api.EntryPoint
}

// builds are all of them. The page is a module. The script for other sites is not: it finds its own
// element by document.currentScript.
var builds = []build{
	{api.FormatESModule, []api.EntryPoint{{InputPath: "./src/main.ts", OutputPath: "main"}, {InputPath: "./src/style.css", OutputPath: "style"}}},
	{api.FormatIIFE, []api.EntryPoint{{InputPath: "./src/embed.ts", OutputPath: "embed"}}},
}

// run adds the outputs to files, and the packages in them to found.
func (b *bundler) run(r build, packages string, files map[string][]byte, found *licenses) error {
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: r.inputs,
		AbsWorkingDir:       b.page,
		Outdir:              "/", // nothing is written
		Bundle:              true,
		Format:              r.format,
		Target:              api.ES2022,
		Charset:             api.CharsetUTF8,
		MinifyWhitespace:    true,
		MinifyIdentifiers:   true,
		MinifySyntax:        true,
		LegalComments:       api.LegalCommentsExternal,
		Metafile:            true,
		Plugins:             []api.Plugin{resolveFrom(packages)},
	})
	if len(result.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage}), ""))
	}
	for _, f := range result.OutputFiles {
		name := filepath.Base(f.Path)
		if strings.HasSuffix(name, legalSuffix) {
			found.comments = append(found.comments, string(f.Contents))
			continue
		}
		files[name] = f.Contents
	}
	return found.add(result.Metafile)
}

// legalSuffix ends the names of the files with licence comments.
const legalSuffix = ".LEGAL.txt"

// resolveFrom is a plugin that finds the page's packages in a folder, and not beside the page, where npm
// may have installed others.
func resolveFrom(packages string) api.Plugin {
	type resolving struct{} // marks the plugin's own calls
	return api.Plugin{Name: "packages", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^[^./]`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if args.PluginData == (resolving{}) {
				return api.OnResolveResult{}, nil
			}
			dir := args.ResolveDir
			if !strings.HasPrefix(dir, packages) {
				dir = packages
			}
			found := build.Resolve(args.Path, api.ResolveOptions{ResolveDir: dir, Kind: args.Kind, Importer: args.Importer, PluginData: resolving{}})
			return api.OnResolveResult{Path: found.Path, External: found.External, SideEffects: sideEffects(found), Errors: found.Errors, Warnings: found.Warnings}, nil
		})
	}}
}

func sideEffects(found api.ResolveResult) api.SideEffects {
	if found.SideEffects {
		return api.SideEffectsTrue
	}
	return api.SideEffectsFalse
}
