package daemon

import (
	"context"
	"errors"
	"fmt"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

func (s *Server) grantCreate(_ context.Context, r *request) (any, error) {
	var p struct {
		Name  string   `json:"name"`
		Right string   `json:"right"`
		Scope []string `json:"scope"`
		Also  []string `json:"also"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if len(p.Scope) == 0 {
		return nil, invalidScope("scope", "scope is empty: a right is granted on something")
	}
	if n := len(p.Scope) + len(p.Also); n > grant.MaxScopes {
		return nil, &wire.Error{
			Code: "limit.grants", Message: fmt.Sprintf("a token has at most %d scopes, not %d", grant.MaxScopes, n),
			Data: map[string]int{"max": grant.MaxScopes},
		}
	}
	var grants []grant.Grant
	for _, text := range p.Scope {
		scope, err := grant.ParseScope(text)
		if err != nil {
			return nil, invalidScope("scope", err.Error())
		}
		grants = append(grants, grant.Grant{Right: manifest.Right(p.Right), Scopes: []grant.Scope{scope}})
	}
	for _, text := range p.Also {
		further, err := grant.Parse(text)
		if err != nil {
			return nil, invalidScope("also", err.Error())
		}
		grants = append(grants, further)
	}
	made, token, err := s.grants.Create(p.Name, grants)
	if err != nil {
		return nil, grantError(p.Name, err)
	}
	return struct {
		Name   string        `json:"name"`
		Token  string        `json:"token"`
		Grants []grant.Grant `json:"grants"`
	}{made.Name, token, made.Grants}, nil
}

func invalidScope(param, message string) error {
	return &wire.Error{Code: "invalid_params.scope", Message: message, Data: map[string]string{"param": param}}
}

// grantError is what a caller is told of an error of package grant.
func grantError(name string, err error) error {
	var bad *grant.NameError
	switch {
	case errors.As(err, &bad):
		return &wire.Error{Code: "invalid_params.name", Message: err.Error(), Data: map[string]string{"param": "name"}}
	case errors.Is(err, grant.ErrTaken):
		return &wire.Error{Code: "conflict.name", Message: fmt.Sprintf("there is a token %s already: 'looptape grant revoke --name %s' ends it", name, name)}
	case errors.Is(err, grant.ErrNoToken):
		return &wire.Error{Code: "not_found.grant", Message: fmt.Sprintf("there is no token %q: 'looptape grant list' shows those there are", clipID(name))}
	case errors.Is(err, grant.ErrEdited):
		return &wire.Error{Code: "conflict.grants", Message: err.Error()}
	case errors.Is(err, grant.ErrFull):
		return &wire.Error{Code: "limit.grants", Message: err.Error() + ": revoke one"}
	}
	return &wire.Error{Code: "unavailable.storage", Message: err.Error()}
}
