// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"net"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// match says what of a node the value of a series' label is.
type match struct {
	config.NodeLoadNodeMatch
}

// keys calls something for each value of the label that means the node.
func (m match) keys(node *v1.Node, do func(key string)) {
	switch m.By {
	case config.NodeLoadMatchInternalIP:
		for i := range node.Status.Addresses {
			if address := &node.Status.Addresses[i]; address.Type == v1.NodeInternalIP {
				do(address.Address)
				if ip := net.ParseIP(address.Address); ip != nil {
					do(ip.String())
				}
			}
		}
	case config.NodeLoadMatchHostname:
		for i := range node.Status.Addresses {
			if address := &node.Status.Addresses[i]; address.Type == v1.NodeHostName {
				do(address.Address)
			}
		}
		do(node.Labels[v1.LabelHostname])
	case config.NodeLoadMatchProviderID:
		do(node.Spec.ProviderID)
		do(node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:])
	default:
		do(node.Name)
	}
}

// directory finds the node that a series is about, among those that there were when it was made.
type directory struct {
	match match
	nodes []*v1.Node
	// names has the index in nodes of each node's name. A snapshot keeps it.
	names map[string]int32
	// keys has that index for each value of the label; for one that means several nodes ^ its index in several.
	keys    map[string]int32
	several [][]int32
}

func newDirectory(match match, nodes []*v1.Node) *directory {
	d := &directory{match: match, nodes: nodes, names: make(map[string]int32, len(nodes)), keys: make(map[string]int32, len(nodes))}
	for i, node := range nodes {
		d.names[node.Name] = int32(i)
		match.keys(node, func(key string) { d.add(key, int32(i)) })
	}
	return d
}

// add notes that a key means a node. Nodes are added in the order of their indices.
func (d *directory) add(key string, node int32) {
	if key == "" {
		return
	}
	known, found := d.keys[key]
	switch {
	case !found:
		d.keys[key] = node
	case known == node:
	case known >= 0:
		d.keys[key] = ^int32(len(d.several))
		d.several = append(d.several, []int32{known, node})
	default:
		if nodes := d.several[^known]; nodes[len(nodes)-1] != node {
			d.several[^known] = append(nodes, node)
		}
	}
}

// find returns the node that a label's value means; if it means several, these. A value that is a key as it is counts
// as such, otherwise without its port.
func (d *directory) find(label []byte) (node int32, several []int32, found bool) {
	at, found := d.keys[string(label)]
	if !found {
		bare := withoutPort(label)
		if at, found = d.keys[string(bare)]; !found && d.match.By == config.NodeLoadMatchInternalIP {
			// An IPv6 address can be written in several ways.
			if ip := net.ParseIP(string(bare)); ip != nil {
				at, found = d.keys[ip.String()]
			}
		}
	}
	if found && at < 0 {
		return 0, d.several[^at], true
	}
	return at, nil, found
}

// withoutPort returns host for host:port, and address for [address] and [address]:port. A colon more is an IPv6 address
// without a port, unless it belongs to the scheme of a provider's id.
func withoutPort(label []byte) []byte {
	if len(label) > 0 && label[0] == '[' {
		if end := bytes.IndexByte(label, ']'); end > 0 && (end == len(label)-1 || isPort(label[end+1:])) {
			return label[1:end]
		}
		return label
	}
	colon := bytes.LastIndexByte(label, ':')
	if colon <= 0 || !isPort(label[colon:]) {
		return label
	}
	if host := label[:colon]; bytes.IndexByte(host, ':') < 0 || bytes.IndexByte(host, '/') >= 0 {
		return host
	}
	return label
}

// isPort says whether something is a colon and then one to five digits.
func isPort(part []byte) bool {
	if len(part) < 2 || len(part) > 6 || part[0] != ':' {
		return false
	}
	for _, digit := range part[1:] {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return true
}
