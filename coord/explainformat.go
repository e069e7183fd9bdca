package coord

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strconv"
	"strings"
)

// planNode is a line of a plan's text and the lines below it, named as PostgreSQL
// names the nodes of its plans.
type planNode struct {
	Node  string      `json:"Node Type" xml:"Node-Type"`
	Plans []*planNode `json:"Plans,omitempty" xml:"-"`
	// Below is Plans in XML, which has no element for none.
	Below *planNodeList `json:"-" xml:"Plans"`
}

type planNodeList struct {
	Plan []*planNode
}

// planNodes are the roots of a plan's text, whose lines are indented by their depth.
func planNodes(text string) []*planNode {
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
	return root.Plans
}

// planJSON is EXPLAIN (FORMAT JSON): an array of an object with the plan.
func planJSON(text string) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	var out []map[string]*planNode
	for _, n := range planNodes(text) {
		out = append(out, map[string]*planNode{"Plan": n})
	}
	if err := enc.Encode(out); err != nil {
		return "", err
	}
	return b.String(), nil
}

// planXML is EXPLAIN (FORMAT XML).
func planXML(text string) (string, error) {
	type query struct {
		Plan *planNode `xml:"Plan"`
	}
	out := struct {
		XMLName xml.Name `xml:"http://www.postgresql.org/2009/explain explain"`
		Queries []query  `xml:"Query"`
	}{}
	var below func(n *planNode)
	below = func(n *planNode) {
		if len(n.Plans) > 0 {
			n.Below = &planNodeList{n.Plans}
		}
		for _, c := range n.Plans {
			below(c)
		}
	}
	for _, n := range planNodes(text) {
		below(n)
		out.Queries = append(out.Queries, query{n})
	}
	b, err := xml.MarshalIndent(out, "", "  ")
	return string(b), err
}

// planYAML is EXPLAIN (FORMAT YAML).
func planYAML(text string) string {
	var b strings.Builder
	var write func(n *planNode, indent string)
	write = func(n *planNode, indent string) {
		b.WriteString("Node Type: " + strconv.Quote(n.Node) + "\n")
		if len(n.Plans) > 0 {
			b.WriteString(indent + "Plans: \n")
		}
		for _, c := range n.Plans {
			b.WriteString(indent + "  - ")
			write(c, indent+"    ")
		}
	}
	for _, n := range planNodes(text) {
		b.WriteString("- Plan: \n    ")
		write(n, "    ")
	}
	return b.String()
}
