package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
)

// skippedTrailer says how many files could not be packed.
const skippedTrailer = "Gaol-Skipped"

// addArchives adds the operations on archives of folders.
func (a *API) addArchives() {
	path := filesPath + "/tar"
	pack := operation("packFolder", http.MethodGet, path, "Download the content of a folder as a tar archive", fileStatuses...)
	pack.Responses = map[string]*huma.Response{
		"200": {Description: "The archive. The trailer " + skippedTrailer + " says how many files it lacks. It ends early if the server fails.", Content: binary(tarArchive)},
	}
	huma.Register(a.huma, pack, a.packFolder)
	unpack := operation("unpackFolder", http.MethodPut, path, "Unpack a tar archive into a folder", append(fileStatuses, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)...)
	unpack.RequestBody = &huma.RequestBody{Description: "An archive of files, folders and links, not compressed.", Required: true, Content: binary(tarArchive, octets)}
	addUse(a, unpack, unpackFolder)
}

func (a *API) packFolder(ctx context.Context, in *inRead) (*huma.StreamResponse, error) {
	ctx, sb, release, err := a.use(ctx, in.InSandbox)
	if err != nil {
		return nil, err
	}
	if err := sb.CheckFolder(in.Path); err != nil {
		release()
		return nil, fail(err)
	}
	return &huma.StreamResponse{Body: func(huma.Context) {
		defer release()
		d := newDownload(ctx, in.w)
		d.Header().Set("Content-Type", tarArchive)
		d.Header().Set("Trailer", skippedTrailer)
		report, err := sb.Tar(d, in.Path)
		if err != nil {
			panic(http.ErrAbortHandler) // so that the client sees that the archive is incomplete
		}
		d.Header().Set(skippedTrailer, strconv.Itoa(report.SkippedAll))
	}}, nil
}

// inUnpack is an archive to unpack.
type inUnpack struct {
	InFile
	service.FolderUnpack
	Stream
}

func unpackFolder(ctx context.Context, sb *service.Sandbox, in *inUnpack) (*result[service.Unpacked], error) {
	body, err := in.newUpload(ctx, sb.MaxUpload())
	if err != nil {
		return nil, err
	}
	report, err := sb.Untar(body, in.Path, in.FolderUnpack)
	if err != nil {
		return nil, body.fail(err)
	}
	return &result[service.Unpacked]{report}, nil
}
