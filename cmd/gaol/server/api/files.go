package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
)

const (
	filesPath  = "/v1/sandboxes/{id}/files"
	octets     = "application/octet-stream"
	tarArchive = "application/x-tar"
)

// InFile is a request about a file. It is exported because huma reads exported fields only.
type InFile struct {
	InSandbox
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4095" doc:"An absolute, clean path in the sandbox. Its bytes need not be UTF-8."`
}

// addFiles adds the operations on files.
func (a *API) addFiles() {
	read := operation("readFile", http.MethodGet, filesPath, "Read a file, or a range of it", append(fileStatuses, http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed)...)
	read.Responses = map[string]*huma.Response{
		"200": {Description: "The content of the file.", Content: binary(octets)},
		"206": {Description: "The range that the header Range asks for.", Content: binary(octets, "multipart/byteranges")},
		"304": {Description: "The file has not changed since the time that the request has."},
	}
	huma.Register(a.huma, read, a.readFile)
	write := operation("writeFile", http.MethodPut, filesPath, "Write a file", append(fileStatuses, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)...)
	write.RequestBody = &huma.RequestBody{Description: "The content. It appears when all of it has been written.", Required: true, Content: binary(octets)}
	addUse(a, write, writeFile)
	addUse(a, operation("removeFile", http.MethodDelete, filesPath, "Remove a file or a folder", fileStatuses...), removeFile)
	addUse(a, operation("statFile", http.MethodGet, filesPath+"/stat", "Describe a file", fileStatuses...), statFile)
	addUse(a, operation("listFiles", http.MethodGet, filesPath+"/list", "List a folder", fileStatuses...), listFiles)
	addUse(a, operation("makeFolder", http.MethodPost, filesPath+"/folder", "Make a folder", fileStatuses...), makeFolder)
	addUse(a, operation("moveFile", http.MethodPost, filesPath+"/move", "Move a file or a folder", fileStatuses...), moveFile)
}

// inRead is a request for a file.
type inRead struct {
	InFile
	Stream
}

func (a *API) readFile(ctx context.Context, in *inRead) (*huma.StreamResponse, error) {
	ctx, sb, release, err := a.use(ctx, in.InSandbox)
	if err != nil {
		return nil, err
	}
	file, info, err := sb.OpenFile(in.Path)
	if err != nil {
		release()
		return nil, fail(err)
	}
	return &huma.StreamResponse{Body: func(huma.Context) {
		defer release()
		defer func() { _ = file.Close() }()
		d := newDownload(ctx, in.w)
		in.w.Header().Set("Content-Type", octets)
		http.ServeContent(d, in.r, "", service.ClampTime(info.ModTime()), file)
	}}, nil
}

// inWrite is a file to write.
type inWrite struct {
	InFile
	service.FileWrite
	Stream
}

// written says how much was written.
type written struct {
	Bytes int64 `json:"bytes" doc:"The size of the file."`
}

func writeFile(ctx context.Context, sb *service.Sandbox, in *inWrite) (*result[written], error) {
	body, err := in.newUpload(ctx, sb.MaxUpload())
	if err != nil {
		return nil, err
	}
	n, err := sb.WriteFile(in.Path, body, in.FileWrite)
	if err != nil {
		return nil, body.fail(err)
	}
	return &result[written]{written{n}}, nil
}

// inStat is a request to describe a file.
type inStat struct {
	InFile
	service.FileStat
}

func statFile(_ context.Context, sb *service.Sandbox, in *inStat) (*result[*service.FileInfo], error) {
	info, err := sb.Stat(in.Path, in.FileStat)
	return &result[*service.FileInfo]{info}, err
}

// inList is a request for a listing.
type inList struct {
	InFile
	service.FolderList
}

func listFiles(ctx context.Context, sb *service.Sandbox, in *inList) (*result[*service.FileList], error) {
	list, err := sb.ListFiles(ctx, in.Path, in.FolderList)
	return &result[*service.FileList]{list}, err
}

// inFolder is a folder to make.
type inFolder struct {
	InFile
	service.FolderMake
}

func makeFolder(_ context.Context, sb *service.Sandbox, in *inFolder) (*empty, error) {
	return nil, sb.MakeFolder(in.Path, in.FolderMake)
}

// inMove is a file to move.
type inMove struct {
	InSandbox
	From string `query:"from" required:"true" minLength:"1" maxLength:"4095" doc:"The path of a file, a folder or a link."`
	To   string `query:"to" required:"true" minLength:"1" maxLength:"4095" doc:"Its new path. An existing file is replaced by a file, an empty folder by a folder."`
}

func moveFile(_ context.Context, sb *service.Sandbox, in *inMove) (*empty, error) {
	return nil, sb.Move(in.From, in.To)
}

// inRemove is a file to remove.
type inRemove struct {
	InFile
	service.FileRemove
}

func removeFile(_ context.Context, sb *service.Sandbox, in *inRemove) (*empty, error) {
	return nil, sb.Remove(in.Path, in.FileRemove)
}
