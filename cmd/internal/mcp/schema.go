package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"looptape/cmd/internal/manifest"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// inputSchema describes the arguments of a tool that takes params.
func inputSchema(params []manifest.Param) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Schema: draft, Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: none(),
	}
	for i := range params {
		p := &params[i]
		s.Properties[p.Name] = paramSchema(p)
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}

// admitNull makes every property of s one that can be null.
func admitNull(s *jsonschema.Schema) {
	for _, p := range s.Properties {
		p.Types, p.Type = []string{p.Type, "null"}, ""
		if p.Enum != nil {
			p.Enum = append(p.Enum, nil)
		}
	}
}

// none is the schema that no value meets: false.
func none() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func paramSchema(p *manifest.Param) *jsonschema.Schema {
	s := typeSchema(p.Type, p.Choices)
	s.Description = p.Summary
	if p.MaxBytes > 0 { // a schema counts characters
		s.Description += fmt.Sprintf(" (at most %d bytes)", p.MaxBytes)
	}
	if p.Min != nil {
		s.Minimum = number(*p.Min)
	}
	if p.Max != nil {
		s.Maximum = number(*p.Max)
	}
	if p.Default != nil {
		s.Default, _ = json.Marshal(p.Default)
	}
	if p.Elem != "" {
		elem := typeSchema(p.Elem, nil)
		if p.Type == manifest.Array {
			s.Items = elem
		} else {
			s.AdditionalProperties = elem
		}
	}
	return s
}

// number is n for a schema: every integer of the protocol is exact as a float64.
func number(n int64) *float64 {
	f := float64(n)
	return &f
}

func typeSchema(t manifest.Type, choices []string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: string(t)}
	switch t {
	case manifest.Time:
		s.Type, s.Format = "string", "date-time"
	case manifest.Bytes:
		s.Type, s.ContentEncoding = "string", "base64"
	case manifest.Value:
		s.Type = ""
	}
	for _, c := range choices {
		s.Enum = append(s.Enum, c)
	}
	return s
}

// outputSchema describes the structured content of a tool that answers result:
// either all of its fields that are not optional, or an error.
func outputSchema(result []manifest.Field) *jsonschema.Schema {
	s := objectSchema(result)
	s.Schema = draft
	answer := &jsonschema.Schema{Required: s.Required}
	s.Required = nil
	s.Properties["error"] = objectSchema([]manifest.Field{
		{Name: "code", Type: manifest.String, Summary: "family.detail"},
		{Name: "message", Type: manifest.String},
		{Name: "data", Type: manifest.Object, Optional: true, Summary: "What a program wants to know of the error"},
	})
	s.Properties["error"].Description = "Instead of all else, with isError: why the call failed"
	s.PropertyOrder = append(s.PropertyOrder, "error")
	s.OneOf = []*jsonschema.Schema{answer, {Required: []string{"error"}}}
	return s
}

func objectSchema(fields []manifest.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for i := range fields {
		f := &fields[i]
		s.Properties[f.Name] = fieldSchema(f)
		s.PropertyOrder = append(s.PropertyOrder, f.Name)
		if !f.Optional {
			s.Required = append(s.Required, f.Name)
		}
	}
	return s
}

func fieldSchema(f *manifest.Field) *jsonschema.Schema {
	s := typeSchema(f.Type, f.Choices)
	switch {
	case f.Type == manifest.Array && f.Fields != nil:
		s.Items = objectSchema(f.Fields)
	case f.Type == manifest.Array:
		s.Items = typeSchema(f.Elem, nil)
	case f.Fields != nil:
		s = objectSchema(f.Fields)
	}
	s.Description = f.Summary
	return s
}
