package coord

import (
	"bytes"
	"encoding/json"
	"strings"
)

// planNode is a line of a plan's text and the lines below it.
type planNode struct {
	Node  string      `json:"Node"`
	Plans []*planNode `json:"Plans,omitempty"`
}

// planJSON is a plan's text, whose lines are indented by their depth, as the
// JSON of EXPLAIN (FORMAT JSON): an array of one object with the plan.
func planJSON(text string) (string, error) {
	root := &planNode{}
	type level struct {
		indent int
		node   *planNode
	}
	stack := []level{{-1, root}}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		body := strings.TrimLeft(line, " ")
		n, indent := &planNode{Node: body}, len(line)-len(body)
		for stack[len(stack)-1].indent >= indent {
			stack = stack[:len(stack)-1]
		}
		up := stack[len(stack)-1].node
		up.Plans = append(up.Plans, n)
		stack = append(stack, level{indent, n})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	out := make([]map[string]*planNode, 0, len(root.Plans))
	for _, n := range root.Plans {
		out = append(out, map[string]*planNode{"Plan": n})
	}
	if err := enc.Encode(out); err != nil {
		return "", err
	}
	return b.String(), nil
}
