package checkpoint

func Encode(dst []byte, s *State) []byte { return dst }

func Decode(b []byte) (*State, error) { return nil, nil }
