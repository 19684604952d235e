package daemon

import (
	"context"

	"looptape/cmd/internal/guide"
)

func (s *Server) skill(context.Context, *request) (any, error) {
	return map[string]string{"text": guide.Skill()}, nil
}
