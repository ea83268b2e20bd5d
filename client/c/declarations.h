/* The headers of the library as text.
 *
 * Not for other users than the Python package: it lays out the structs by their declarations, so
 * that no struct is declared twice. */
#ifndef SAP_ISLANDS_CLIENT_C_DECLARATIONS_H_
#define SAP_ISLANDS_CLIENT_C_DECLARATIONS_H_

#ifdef __cplusplus
extern "C" {
#endif

#define SAP_PYTHON_API __attribute__((visibility("default")))

/* sap_islands_types.h and sap_islands_worlds.h, then the headers of the loops of the adapters. */
SAP_PYTHON_API const char* sap_declarations(void);

#ifdef __cplusplus
}
#endif

#endif /* SAP_ISLANDS_CLIENT_C_DECLARATIONS_H_ */
