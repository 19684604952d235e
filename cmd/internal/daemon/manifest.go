package daemon

import (
	"context"

	"looptape/cmd/internal/manifest"
)

func (s *Server) manifest(context.Context, *request) (any, error) {
	return struct {
		Format int             `json:"manifest_format"`
		Verbs  []manifest.Verb `json:"verbs"`
	}{manifest.Format, manifest.Verbs}, nil
}
