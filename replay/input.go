package replay

func EncodeKey(name string, m Modes) ([]byte, error) { return nil, nil }

func EncodePaste(text string, m Modes) []byte { return nil }
