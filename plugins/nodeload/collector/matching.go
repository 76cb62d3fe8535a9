// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"net"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// directory finds the nodes that a label's value identifies.
type directory struct {
	by config.NodeLoadMatchBy
	// keys has the indices of the nodes that a value identifies, in order; more than one are ambiguous.
	keys map[string][]int32
}

func newDirectory(by config.NodeLoadMatchBy, nodes []*v1.Node) *directory {
	d := &directory{by: by, keys: make(map[string][]int32, len(nodes))}
	indices := make([]int32, len(nodes))
	for i, node := range nodes {
		indices[i] = int32(i)
		d.add(node, indices[i:i+1:i+1])
	}
	return d
}

// add adds all values that identify a node: of one kind, or with Auto of all kinds.
func (d *directory) add(node *v1.Node, index []int32) {
	key := func(by config.NodeLoadMatchBy, value string) {
		if value == "" || d.by != by && d.by != config.NodeLoadMatchAuto {
			return
		}
		if known := d.keys[value]; known == nil {
			d.keys[value] = index
		} else if known[len(known)-1] != index[0] {
			d.keys[value] = append(known, index[0])
		}
	}
	key(config.NodeLoadMatchName, node.Name)
	key(config.NodeLoadMatchHostname, node.Labels[v1.LabelHostname])
	for i := range node.Status.Addresses {
		switch address := node.Status.Addresses[i]; address.Type {
		case v1.NodeHostName:
			key(config.NodeLoadMatchHostname, address.Address)
		case v1.NodeInternalIP:
			key(config.NodeLoadMatchInternalIP, address.Address)
			if ip := net.ParseIP(address.Address); ip != nil {
				key(config.NodeLoadMatchInternalIP, ip.String())
			}
		}
	}
	key(config.NodeLoadMatchProviderID, node.Spec.ProviderID)
	key(config.NodeLoadMatchProviderID, node.Spec.ProviderID[strings.LastIndexByte(node.Spec.ProviderID, '/')+1:])
}

// find returns the nodes that a label's value identifies: as it is, or else without its port. An IPv6 address can be
// written in several ways.
func (d *directory) find(label string) []int32 {
	if nodes := d.keys[label]; nodes != nil {
		return nodes
	}
	bare := withoutPort(label)
	if nodes := d.keys[bare]; nodes != nil {
		return nodes
	}
	if ip := net.ParseIP(bare); ip != nil {
		return d.keys[ip.String()]
	}
	return nil
}

// withoutPort returns host for host:port, and address for [address] and [address]:port. With more than one colon it is
// an IPv6 address without a port, unless the first colon belongs to the scheme of a provider's id.
func withoutPort(label string) string {
	if strings.HasPrefix(label, "[") {
		if end := strings.IndexByte(label, ']'); end > 0 && (end == len(label)-1 || isPort(label[end+1:])) {
			return label[1:end]
		}
		return label
	}
	colon := strings.LastIndexByte(label, ':')
	if colon <= 0 || !isPort(label[colon:]) {
		return label
	}
	if host := label[:colon]; !strings.Contains(host, ":") || strings.Contains(host, "/") {
		return host
	}
	return label
}

// isPort reports whether a text is a colon and one to five digits.
func isPort(part string) bool {
	return len(part) >= 2 && len(part) <= 6 && part[0] == ':' && strings.Trim(part[1:], "0123456789") == ""
}
