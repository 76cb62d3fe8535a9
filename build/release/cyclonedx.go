// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// componentTypes are CycloneDX's words for SPDX' purposes of packages.
var componentTypes = map[string]cdx.ComponentType{
	"APPLICATION": cdx.ComponentTypeApplication, "CONTAINER": cdx.ComponentTypeContainer, "INSTALL": cdx.ComponentTypeApplication,
	"LIBRARY": cdx.ComponentTypeLibrary, "SOURCE": cdx.ComponentTypeLibrary,
}

// forward are the relationships of a whole to its part; the others lead from the part.
var forward = []string{
	common.TypeRelationshipContains, common.TypeRelationshipStaticLink, common.TypeRelationshipGeneratedFrom,
}

// cycloneDX returns an encoded SPDX document as CycloneDX 1.6 JSON. Everything that a whole is made from is a dependency
// of it.
func (l inventory) cycloneDX() ([]byte, error) {
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(l.DocumentNamespace)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: l.CreationInfo.Created}
	parts := map[common.ElementID][]string{}
	for _, one := range l.Relationships {
		whole, part := one.RefA.ElementRefID, one.RefB.ElementRefID
		if whole != "DOCUMENT" && !slices.Contains(forward, one.Relationship) {
			whole, part = part, whole
		}
		parts[whole] = append(parts[whole], string(part))
	}
	var components []cdx.Component
	var dependencies []cdx.Dependency
	for _, described := range l.Packages {
		component := cdx.Component{
			BOMRef: string(described.PackageSPDXIdentifier), Type: componentTypes[described.PrimaryPackagePurpose],
			Name: described.PackageName, Version: described.PackageVersion, Hashes: hashes(described.PackageChecksums),
			Description: strings.Trim(described.PackageSourceInfo+". "+described.PackageComment, ". "),
		}
		for _, reference := range described.PackageExternalReferences {
			switch reference.RefType {
			case common.TypePackageManagerPURL:
				component.PackageURL = reference.Locator
			case common.TypeSecurityCPE23Type:
				component.CPE = reference.Locator
			}
		}
		if licence := described.PackageLicenseDeclared; strings.Contains(licence, " AND ") {
			component.Licenses = &cdx.Licenses{{Expression: licence}}
		} else if licence != unknown {
			component.Licenses = &cdx.Licenses{{License: &cdx.License{ID: licence}}}
		}
		if parts["DOCUMENT"][0] == component.BOMRef {
			bom.Metadata.Component = &component
		} else {
			components = append(components, component)
		}
	}
	for _, patch := range l.Files {
		components = append(components, cdx.Component{
			BOMRef: string(patch.FileSPDXIdentifier), Type: cdx.ComponentTypeFile, Name: patch.FileName,
			Description: patch.FileComment, Hashes: hashes(patch.Checksums),
		})
	}
	for _, component := range append(components, *bom.Metadata.Component) {
		if of := parts[common.ElementID(component.BOMRef)]; len(of) > 0 {
			dependencies = append(dependencies, cdx.Dependency{Ref: component.BOMRef, Dependencies: &of})
		}
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var content bytes.Buffer
	if err := cdx.NewBOMEncoder(&content, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("the SBOM: %w", err)
	}
	return content.Bytes(), nil
}

func hashes(checksums []common.Checksum) *[]cdx.Hash {
	var hashes []cdx.Hash
	for _, checksum := range checksums {
		algorithm := cdx.HashAlgorithm(strings.Replace(string(checksum.Algorithm), "SHA", "SHA-", 1))
		hashes = append(hashes, cdx.Hash{Algorithm: algorithm, Value: checksum.Value})
	}
	if hashes == nil {
		return nil
	}
	return &hashes
}
